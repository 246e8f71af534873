package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/run"
)

// builtCLI builds the temporal CLI, once for all tests.
var builtCLI = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "tool", "-n", "temporal")
	cmd.Dir = filepath.Join(project, "tools")
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
})

// cli uses the environment's server with nothing but the run's ID.
type cli struct {
	h       *environment
	program string
	env     []string // the server and its certificates
	id      string   // of the run
}

func (h *environment) cli(dir string) cli {
	h.t.Helper()
	program, err := builtCLI()
	require.NoError(h.t, err)
	st := h.running()
	require.NotNil(h.t, st.Server)
	return cli{h: h, program: program, env: st.Server.Env(), id: metaOf(h.t, dir).RunID}
}

// try returns the output of the CLI and whether it succeeded.
func (c cli) try(args ...string) (string, bool) {
	c.h.t.Helper()
	cmd := exec.CommandContext(c.h.t.Context(), c.program,
		append(args, "--workflow-id", c.id)...)
	cmd.Env = append(append(testenv.CleanEnv(os.Environ()), "HOME="+c.h.root), c.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func (c cli) do(args ...string) string {
	c.h.t.Helper()
	output, ok := c.try(args...)
	require.True(c.h.t, ok, "temporal %s:\n%s", strings.Join(args, " "), output)
	return output
}

// TestTemporalCLI pauses, queries, raises the budget, resumes, resets and describes a run with Temporal's own program
// alone. The command that the Web UI shows for a paused run can be typed as it is.
func TestTemporalCLI(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	third, endThird := h.held("3")
	seventh, endSeventh := h.held("7")
	h.spoil(third + seventh)
	dir := h.dir("run")
	h.begin(dir)
	h.mid("003")
	c := h.cli(dir)

	c.do("workflow", "signal", "--name", "pause", "--input", `{"by":"ada","note":"lunch"}`)
	endThird()
	until(t, "the run is paused", func() bool { return statusIs(dir, run.Paused) })
	paused := of[run.RunPaused](eventsOf(t, dir), run.KindRunPaused)[0]
	require.Equal(t, run.RunPaused{Reason: run.UserRequested, Detail: "lunch", By: "ada"}, paused)

	require.Contains(t, c.do("workflow", "query", "--type", "status"), `"status":"paused"`)
	require.Contains(t, c.do("workflow", "describe"), "corpus-tiny in "+dir)
	output, ok := c.try("workflow", "update", "execute", "--name", "budget", "--input", `{"usd":0.01}`)
	require.False(t, ok, output)
	require.Contains(t, output, "a budget of 0.01 USD is below the current cost")
	c.do("workflow", "update", "execute", "--name", "budget", "--input", `{"usd":500}`)
	require.Equal(t, 500.0, metaOf(t, dir).State.Budget.CapUSD)
	before, answer := h.commandsInTheWebUI(c.id)
	out, err := h.terminal(before + "\n" + answer)
	require.NoError(t, err, "%s: %s", answer, out)

	h.mid("007")
	output, ok = c.try("workflow", "update", "execute", "--name", "resume", "--input", `{}`)
	require.False(t, ok, output)
	require.Contains(t, output, "only a paused run can be resumed")
	c.do("workflow", "reset", "--type", "FirstWorkflowTask", "--reason", "test", "--reapply-exclude", "All")
	endSeventh()
	h.finish(dir)
	h.undisturbed(dir, 1)
	require.Equal(t, 2, metaOf(t, dir).State.Epoch)
}

// commandsInTheWebUI reads the current details of a paused run as the Web UI does: the command that prepares the
// terminal, and the one that resumes the run.
func (h *environment) commandsInTheWebUI(id string) (before, answer string) {
	h.t.Helper()
	v, err := h.dial().QueryWorkflow(h.t.Context(), id, "", "__temporal_workflow_metadata")
	require.NoError(h.t, err)
	var meta sdkpb.WorkflowMetadata
	require.NoError(h.t, v.Get(&meta))
	for line := range strings.Lines(meta.CurrentDetails) {
		if strings.HasPrefix(line, "temporal ") {
			answer = line
		}
		if strings.HasPrefix(line, "eval ") {
			before = line
		}
	}
	require.NotEmpty(h.t, before)
	require.NotEmpty(h.t, answer)
	return before, answer
}

// TestActivitiesUnderTheCLI pauses and resets the activity of a pass, and cancels the workflow: each time the agent
// ends.
func TestActivitiesUnderTheCLI(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	h.spoil(slow("3", "600"))
	dir := h.dir("run")
	h.begin(dir)
	agent := h.mid("003")
	c := h.cli(dir)
	c.do("activity", "pause", "--activity-id", "pass-003")
	gone(t, agent, "its activity was paused")
	until(t, "the run is paused", func() bool { return statusIs(dir, run.Paused) })
	require.Contains(t, of[run.RunPaused](eventsOf(t, dir), run.KindRunPaused)[0].Detail, "was paused")

	h.spoil("- {at: 3, do: slow, seconds: 600, attempt: 1-9}\n")
	h.starter("resume", dir)
	agent = h.mid("003")
	h.spoil(slow("5", "600"))
	c.do("activity", "reset", "--activity-id", "pass-003-2") // the second delivery that this execution makes of it
	gone(t, agent, "its activity was reset")

	agent = h.mid("005")
	c.do("workflow", "cancel")
	gone(t, agent, "the run was cancelled")
	until(t, "the run is cancelled", func() bool { return statusIs(dir, run.Cancelled) })
	h.spoil("[]\n")
	h.starter("resume", dir)
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	h.undisturbed(dir, 3)
}

// gone wants a process to end.
func gone(t *testing.T, id process.Identity, why string) {
	t.Helper()
	until(t, why+", and its agent is gone", func() bool { return !id.Alive() })
}

// terminal runs what a user types, with starter and temporal on the path and nothing set for Temporal.
func (h *environment) terminal(script string) ([]byte, error) {
	h.t.Helper()
	program, err := builtCLI()
	require.NoError(h.t, err)
	cmd := exec.CommandContext(h.t.Context(), "sh", "-c", script)
	cmd.Env = append(slices.Clone(h.env), "HOME="+h.root, "XDG_CONFIG_HOME="+h.dir("config"),
		"PATH="+programs+":"+filepath.Dir(program)+":"+os.Getenv("PATH"))
	return cmd.CombinedOutput()
}

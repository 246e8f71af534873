package e2e_test

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/layout"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// builtCLI builds the pinned temporal CLI, once for all tests.
var builtCLI = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "run", "./cluster", "temporal-cli")
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
	return cli{h: h, program: program, env: st.Server.SetEnv(), id: metaOf(h.t, dir).RunID}
}

// try gives what the CLI said and whether it was content.
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

// TestTemporalCLI pauses, asks, raises the budget, resumes, resets and describes a run with nothing but Temporal's
// own program.
func TestTemporalCLI(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("3", "8") + slow("7", "10"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("003")
	c := h.cli(dir)

	c.do("workflow", "signal", "--name", "pause", "--input", `{"by":"ada","note":"lunch"}`)
	until(t, "the run rests", func() bool { return statusIs(dir, run.Paused) })
	paused := of[run.RunPaused](eventsOf(t, dir), run.KindRunPaused)[0]
	require.Equal(t, run.RunPaused{Reason: run.UserRequested, Detail: "lunch", By: "ada", Auth: "none"}, paused)

	require.Contains(t, c.do("workflow", "query", "--type", "status"), `"status":"paused"`)
	require.Contains(t, c.do("workflow", "describe"), "corpus-tiny in "+dir)
	output, ok := c.try("workflow", "update", "execute", "--name", "budget", "--input", `{"usd":0.01}`)
	require.False(t, ok, output)
	require.Contains(t, output, "a budget of 0.01 USD is below the current cost")
	require.Contains(t, c.do("workflow", "update", "execute", "--name", "budget", "--input", `{"usd":500}`),
		"the budget is 500.00 USD")
	require.Contains(t, c.do("workflow", "update", "execute", "--name", "resume", "--input", `{}`), "resuming")

	h.mid("007")
	output, ok = c.try("workflow", "update", "execute", "--name", "resume", "--input", `{}`)
	require.False(t, ok, output)
	require.Contains(t, output, "only a paused run can be resumed")
	c.do("workflow", "reset", "--type", "FirstWorkflowTask", "--reason", "test", "--reapply-exclude", "All")
	h.finish(dir)
	events := h.undisturbed(dir, 1)
	require.Len(t, of[run.RunReverted](events, run.KindRunReverted), 1)
	c.startsNothing()
}

// startsNothing starts the workflow by hand, without what a run needs: it fails at once, and no file is written.
func (c cli) startsNothing() {
	t := c.h.t
	t.Helper()
	d, err := c.h.dial().DescribeWorkflow(t.Context(), c.id, "")
	require.NoError(t, err)
	c.id = "by-hand"
	output, ok := c.try("workflow", "execute", "--type", workflows.Name, "--task-queue", d.TaskQueueName,
		"--input", "{}")
	require.False(t, ok, output)
	require.Contains(t, output, "target.run_id is missing, target.dir is missing")
	require.Contains(t, output, "start runs with the starter binary")
	// server and worker delete files meanwhile
	require.NoError(t, filepath.WalkDir(c.h.state(), func(path string, _ fs.DirEntry, _ error) error {
		require.NotEqual(t, layout.ClaimFile, filepath.Base(path), path)
		return nil
	}))
}

// TestExcessMessagesAreRefused: what is too large is refused or written down, and more at once than the server takes
// end one after another.
func TestExcessMessagesAreRefused(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("2", "4"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("002")
	c, id := h.dial(), metaOf(t, dir).RunID
	long := workflows.Message{Note: strings.Repeat("x", 40<<10)}
	_, err := send(t, c, id, workflows.VerbPause, long)
	require.ErrorContains(t, err, "the maximum is 32768")
	require.NoError(t, c.SignalWorkflow(t.Context(), id, "", workflows.VerbPause, long))
	until(t, "the signal is written down", func() bool {
		output := of[run.DecisionRefused](eventsOf(t, dir), run.KindDecisionRefused)
		return len(output) == 1 && strings.Contains(output[0].Reason, "the maximum is 32768")
	})

	// the run cannot end before the last of them
	require.NoError(t, c.SignalWorkflow(t.Context(), id, "", workflows.VerbPause, workflows.Message{}))
	const many = 25
	errs := make([]error, many)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() { _, errs[i] = send(t, c, id, workflows.VerbBudget, workflows.Message{USD: float64(100 + i)}) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err, "an Update of many at once")
	}
	until(t, "the run rests", func() bool { return statusIs(dir, run.Paused) })
	_, err = send(t, c, id, workflows.VerbResume, workflows.Message{})
	require.NoError(t, err)
	h.finish(dir)
	events := h.undisturbed(dir, 0)
	require.Len(t, of[run.BudgetEvent](events, run.KindBudgetRaised), many)
}

// send sends an Update.
func send(t *testing.T, c client.Client, id, verb string, m workflows.Message) (ack workflows.Ack, err error) {
	h, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
		UpdateID: uuid.NewString(), WorkflowID: id, UpdateName: verb, Args: []any{m},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(t.Context(), &ack)
	}
	return ack, err
}

// TestActivitiesUnderTheCLI pauses and resets the activity of a pass, and cancels the workflow: the agent is gone
// within five seconds each time.
func TestActivitiesUnderTheCLI(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("3", "600"))
	dir := h.dir("run")
	h.begin(dir)
	agent := h.mid("003")
	c := h.cli(dir)
	c.do("activity", "pause", "--activity-id", "pass-003")
	gone(t, agent, "its activity was paused")
	until(t, "the run rests", func() bool { return statusIs(dir, run.Paused) })
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

// gone wants a process to be no more within five seconds.
func gone(t *testing.T, id process.Identity, why string) {
	t.Helper()
	began := time.Now()
	until(t, why+", and its agent is gone", func() bool { return !id.Alive() })
	require.Less(t, time.Since(began), 5*time.Second)
}

// TestDetailsInTheWebUI reads the current details as the Web UI does: the commands in them can be typed.
func TestDetailsInTheWebUI(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("2", "6"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("002")
	h.starter("pause", dir)
	until(t, "the run rests", func() bool { return statusIs(dir, run.Paused) })
	c := h.cli(dir)
	var answer, before []string
	v, err := h.dial().QueryWorkflow(t.Context(), c.id, "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var meta sdkpb.WorkflowMetadata
	require.NoError(t, v.Get(&meta))
	require.Contains(t, meta.CurrentDetails, "paused (user-requested)")
	for _, line := range strings.Split(meta.CurrentDetails, "\n") {
		if strings.HasPrefix(line, "temporal ") {
			answer = append(answer, line)
		}
		if strings.HasPrefix(line, "eval ") {
			before = append(before, line)
		}
	}
	require.Len(t, answer, 1)
	require.Len(t, before, 1)
	out, err := h.terminal(before[0] + "\n" + answer[0])
	require.NoError(t, err, "%s: %s", answer[0], out)
	h.finish(dir)
	h.undisturbed(dir, 0)
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

var tctl = flag.String("tctl", "", "the archived tctl, as `make tctl` builds it")

// TestTctl pauses and resumes with the CLI of old, which many clusters still have. It knows no Updates.
func TestTctl(t *testing.T) {
	if *tctl == "" {
		t.Skip("needs tctl: make tctl-test")
	}
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("2", "6"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("002")
	env, id := append(os.Environ(), h.running().Server.SetEnv()...), metaOf(t, dir).RunID
	wf := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), *tctl, append([]string{"wf"}, args...)...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "tctl wf %v: %s", args, out)
		return string(out)
	}
	wf("signal", "-w", id, "-n", "pause", "-i", `{"by":"ada"}`)
	until(t, "the run rests", func() bool { return statusIs(dir, run.Paused) })
	require.Equal(t, "ada", of[run.RunPaused](eventsOf(t, dir), run.KindRunPaused)[0].By)
	require.Contains(t, wf("query", "-w", id, "--qt", "status"), "paused")
	wf("signal", "-w", id, "-n", "resume", "-i", "{}")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	h.undisturbed(dir, 0)
}

package e2e_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// statusOutput is the output of `status --json`.
type statusOutput struct {
	EffectiveStatus run.EffectiveStatus `json:"standing"`
	State           run.State           `json:"state"`
}

func (h *environment) status(dir string) statusOutput {
	h.t.Helper()
	var s statusOutput
	text, _ := h.try("status", dir, "--json") // its exit code is that of the run
	require.NoError(h.t, json.Unmarshal([]byte(text), &s), text)
	return s
}

// asked waits until the run has asked that often, and returns its open question.
func (h *environment) asked(dir string, times int) run.Question {
	h.t.Helper()
	until(h.t, "the run asks", func() bool {
		return statusIs(dir, run.AwaitingPhaseHandoff) && len(metaOf(h.t, dir).History.Handoffs) == times
	})
	q, _ := metaOf(h.t, dir).State.Asks()
	return q
}

// asksAboutThePlan begins a run that asks at once, and returns its directory.
func (h *environment) asksAboutThePlan(name string) string {
	h.t.Helper()
	config := h.definition(h.dir("plan-definition"), `pipeline: asks
agent: {run: [sh, -c, "cat >/dev/null; echo Greet the world."], reply: text}
roles: {planner: {prompt: plan.md, gives: report}}
stages: [{name: plan, steps: [{role: planner}, {ask: 'Is this the right plan?'}]}]
`, map[string]string{"plan.md": "Plan it.\n"})
	dir := h.dir(name)
	h.starter("run", "--config", config, "--output-dir", dir, "--detach")
	h.asked(dir, 1)
	return dir
}

// TestDecide answers a question again, too late, and by a signal without a worker.
func TestDecide(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir := h.asksAboutThePlan("run")
	first := h.asked(dir, 1)
	refused := func(want int, args ...string) {
		t.Helper()
		output, code := h.try(append([]string{"decide", dir}, args...)...)
		require.Equal(t, want, code, output)
	}
	retry := []string{"--action", "retry_feedback", "--feedback", "make it calmer", "--by", "ada", "--id", first.ID}
	refused(2, "--action", "perhaps")
	h.starter(append([]string{"decide", dir}, retry...)...)
	second := h.asked(dir, 2)
	require.NotEqual(t, first.ID, second.ID)
	h.starter(append([]string{"decide", dir}, retry...)...) // repeated, it has no effect
	refused(5, "--action", "halt", "--id", first.ID)

	h.kill(h.worker())
	require.NoError(t, h.dial().SignalWorkflow(t.Context(), metaOf(t, dir).RunID, "", contract.VerbDecide,
		contract.Message{Action: "continue", By: "bob"}))
	require.True(t, statusIs(dir, run.AwaitingPhaseHandoff), "no worker handles the decision")
	h.starter("server", "start")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	decided := of[run.QuestionDecided](eventsOf(t, dir), run.KindHandoffDecided)
	require.Len(t, decided, 2)
	require.Equal(t, "ada", decided[0].DecidedBy)
	require.Equal(t, run.ActionRetryFeedback, decided[0].Action)
	require.Equal(t, "bob", decided[1].DecidedBy)
	require.Equal(t, run.ActionContinue, decided[1].Action)
	h.valid(dir)
}

// clean wants a check to find nothing.
func clean(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, checked(dir))
}

// valid wants a directory that check finds nothing in, and that only its owner can read.
func (h *environment) valid(dir string) {
	h.t.Helper()
	r, err := rundir.Check(h.t.Context(), rundir.At(dir), rundir.CheckOptions{})
	require.NoError(h.t, err)
	require.Empty(h.t, r.Issues)
	private(h.t, dir)
}

// private requires that only the owner can read a run directory. The workspace is the user's tree, with its own modes.
func private(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == filepath.Join(dir, rundir.WorkspaceDir) {
			return fs.SkipDir
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file that has replaced another one
		}
		if err == nil && e.Type()&fs.ModeSymlink == 0 {
			require.Zero(t, info.Mode().Perm()&0o077, "%s has mode %v", path, info.Mode())
		}
		return err
	}))
}

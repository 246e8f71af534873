package e2e_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// asking is the small example with a loop that cannot end well, and asks.
func (h *environment) asking() string {
	h.t.Helper()
	folder := h.copyExample()
	replace(h.t, folder, "corpus-tiny.yaml", "repeat: {max: 2, until: score >= 3}",
		"repeat: {max: 1, until: score >= 4, otherwise: ask}")
	return filepath.Join(folder, "corpus-tiny.yaml")
}

// asked waits until the run has asked that often, and gives the hand-off.
func (h *environment) asked(dir string, times int) run.Question {
	h.t.Helper()
	until(h.t, "the run asks", func() bool {
		return statusIs(dir, run.AwaitingPhaseHandoff) && len(metaOf(h.t, dir).History.Handoffs) == times
	})
	q, _ := metaOf(h.t, dir).State.Asks()
	return q
}

// TestDecide asks a person, who answers in every way there is: wrongly, twice, too late, without a worker, and at last
// well.
func TestDecide(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir := h.dir("run")
	h.starter("run", "--config", h.asking(), "--output-dir", dir, "--detach")
	first := h.asked(dir, 1)
	c := h.dial()
	h.agree(c, dir, run.AwaitingPhaseHandoff)
	require.Contains(t, h.starter("status", dir), "decide "+dir+" --action continue")
	output := h.starter("decide", dir, "--show")
	for _, text := range []string{first.ID, "score >= 4 is not met after 1 round", "continue_with_waiver",
		"refine-output.txt"} {
		require.Contains(t, output, text)
	}
	refused := func(want int, words string, args ...string) {
		t.Helper()
		output, code := h.try(append([]string{"decide", dir}, args...)...)
		require.Equal(t, want, code, output)
		require.Contains(t, output, words)
	}
	refused(2, "name the action")
	refused(2, "is not an action", "--action", "perhaps")
	refused(2, "needs feedback", "--action", "retry_feedback")
	refused(2, "not polish:9:9:x", "--action", "continue", "--id", "polish:9:9:x")
	output, code := h.try("resume", dir)
	require.Equal(t, 5, code, output)

	h.starter("decide", dir, "--action", "retry_feedback", "--feedback", "make it calmer", "--by", "ada")
	second := h.asked(dir, 2)
	require.NotEqual(t, first.ID, second.ID)
	require.Contains(t, string(read(t, dir+"/_orchestrator/screenshots/cycle-3/weaver-prompt.md")), "make it calmer",
		"the round that is done again has the operator's words")
	// once more: no effect
	h.starter("decide", dir, "--action", "retry_feedback", "--feedback", "make it calmer", "--by", "ada", "--id",
		first.ID)
	refused(5, "was already decided with retry_feedback", "--action", "halt", "--id", first.ID)

	h.kill(h.worker())
	require.NoError(t, c.SignalWorkflow(t.Context(), metaOf(t, dir).RunID, "", workflows.VerbDecide,
		workflows.Message{Action: "continue", By: "bob"}))
	require.True(t, statusIs(dir, run.AwaitingPhaseHandoff), "nobody is there to take the decision")
	h.starter("server", "start")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	events := complete(t, dir)
	var decided []string
	for _, d := range of[run.QuestionDecided](events, run.KindHandoffDecided) {
		decided = append(decided, d.DecidedBy+" "+d.Action)
	}
	require.Equal(t, []string{"ada retry_feedback", "bob continue"}, decided)
	files, err := filepath.Glob(dir + "/phase_handoff_decisions/*.json")
	require.NoError(t, err)
	require.Len(t, files, 2)
	h.sound(dir)
	h.noAgents()
}

// sound wants a directory that check finds nothing in.
func (h *environment) sound(dir string) {
	h.t.Helper()
	r, err := fsck.Check(h.t.Context(), projector.At(dir).Dir, fsck.CheckOptions{})
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
		if path == filepath.Join(dir, layout.WorkspaceDir) {
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

// TestInterruptedRunKeepsHandoff loses the workflow while the run waits. A decision continues it in a new epoch; a
// resume without a decision is refused.
func TestInterruptedRunKeepsHandoff(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir := h.dir("run")
	h.starter("run", "--config", h.asking(), "--output-dir", dir, "--detach")
	first := h.asked(dir, 1)
	require.NoError(t, h.dial().TerminateWorkflow(t.Context(), metaOf(t, dir).RunID, "", "test"))
	until(t, "it is seen", func() bool { return h.status(dir).EffectiveStatus.Status == run.Interrupted })
	before := tree(t, dir)
	for _, verb := range [][]string{{"resume"}, {"resume", "--force", "--reason", "all the same"}, {"check"},
		{"repair-state", "--apply"}, {"status"}, {"diagnose"}} {
		output, code := h.try(append(verb, dir)...)
		require.Equal(t, 4, code, "%v: %s", verb, output)
		require.Contains(t, output, "decide", "%v", verb)
	}
	sameTree(t, before, tree(t, dir))
	output, _ := h.try("resume", dir)
	require.Contains(t, output, first.ID+" is not decided")
	require.Contains(t, h.starter("decide", dir, "--action", "halt", "--note", "enough"), "continues in epoch 2")
	until(t, "the run is halted, and has ended", func() bool {
		return statusIs(dir, run.Halted) && len(of[run.RunEnd](eventsOf(t, dir), run.KindRunEnd)) > 0
	})
	events := eventsOf(t, dir)
	require.Equal(t, first.ID, of[run.QuestionDecided](events, run.KindHandoffDecided)[0].ID)
	require.Len(t, of[run.RunEnd](events, run.KindRunEnd), 1)
	meta := metaOf(t, dir)
	require.Equal(t, run.ReasonHandoffHalt, meta.HaltReason)
	require.Nil(t, meta.PhaseHandoff)
	h.sound(dir)
}

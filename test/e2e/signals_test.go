package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// waiting takes a page, fails to take its pictures, skips a question about approved work, and asks another one.
const waiting = `pipeline: waiting
limits: {time_scale: 0.01}
agent: {run: [sh, %s], reply: text, env: [OUT], sandbox: none}
artifact: {file: page.html, seed: page.html}
roles:
  writer: {prompt: p.md, gives: artifact}
  reviewer: {prompt: p.md, gives: report, verdict: {find: '(approved)'}}
stages:
  - name: work
    steps:
      - {role: writer}
      - screenshots: {sizes: [320x200], kinds: [full], attempts: 2}
      - {role: reviewer}
      - ask: {question: "Is it good?", type: human_feedback_on_reject}
      - ask: {question: "Go on?", remind: 1s}
      - {role: reviewer}
`

// TestSignals sends as signals what people mostly send as Updates: a signal has the same effect, and its sender no
// answer. The run has no browser and waits for an operator.
func TestSignals(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_BROWSER=/bin/false", uncached)
	out, dir, folder := h.dir("out"), h.dir("run"), t.TempDir()
	require.NoError(t, os.MkdirAll(out, 0o700))
	h.env = append(h.env, "OUT="+out)
	definition := filepath.Join(folder, "pipeline.yaml")
	for name, text := range map[string]string{
		"p.md": "Do it.\n", "page.html": "<p>Page</p>\n",
		"agent.sh": "cat > \"$OUT/prompt\"\nwhile [ -e \"$OUT/hold\" ]; do sleep 0.05; done\n" +
			"echo '<p>Page</p>'\necho approved\n",
		"pipeline.yaml": fmt.Sprintf(waiting, filepath.Join(folder, "agent.sh")),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	h.starter("run", definition, "--output-dir", dir, "--detach")
	until(t, "the run has a journal", func() bool { return statusIs(dir, run.AwaitingPhaseHandoff) })
	until(t, "the run reminds of its question", func() bool {
		return len(of[run.QuestionReminded](eventsOf(t, dir), run.KindQuestionReminded)) > 0
	})
	require.Len(t, of[run.StepSkipped](eventsOf(t, dir), run.KindStepSkipped), 1)
	require.Len(t, of[run.ShotsAttempt](eventsOf(t, dir), run.KindShotsAttempt), 2)

	c, id := h.dial(), metaOf(t, dir).RunID
	signal := func(verb string, m workflows.Message) {
		require.NoError(t, c.SignalWorkflow(t.Context(), id, "", verb, m))
	}
	signal(workflows.VerbSteer, workflows.Message{Text: "Be brief."})
	signal(workflows.VerbAmend, workflows.Message{}) // it has no changes
	until(t, "the second one is refused", func() bool {
		return len(of[run.DecisionRefused](eventsOf(t, dir), run.KindDecisionRefused)) == 1
	})
	hold := filepath.Join(out, "hold")
	require.NoError(t, os.WriteFile(hold, nil, 0o600))
	h.starter("decide", dir, "--action", "continue")
	until(t, "the last call runs", func() bool { return len(metaOf(t, dir).State.InFlight) == 1 })
	signal(workflows.VerbPause, workflows.Message{Now: true})
	until(t, "the run is paused", func() bool { return statusIs(dir, run.Paused) })
	require.NoError(t, os.Remove(hold))
	signal(workflows.VerbResume, workflows.Message{})
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	require.Contains(t, string(read(t, filepath.Join(out, "prompt"))), "Be brief.")
	h.sound(dir)
}

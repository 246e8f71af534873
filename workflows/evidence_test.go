package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// alone wants every answered call to have an id of its own, and gives the folders that its evidence goes to by step.
func (w *harness) alone() map[string][]int {
	w.t.Helper()
	ids, redo := map[string]bool{}, map[string][]int{}
	for _, e := range w.dir.events(w.t) {
		var p run.PassEnd
		if e.Decode(&p); e.Kind != run.KindPassEnd {
			continue
		}
		require.False(w.t, ids[p.Call], "two calls have the id %s", p.Call)
		ids[p.Call] = true
		redo[p.Step+p.Member] = append(redo[p.Step+p.Member], p.Redo)
	}
	return redo
}

func TestRedonePassHasNewCallID(t *testing.T) {
	retry := message{"action": "retry_feedback", "feedback": "shorter"}
	t.Run("a hand-off, three times", func(t *testing.T) {
		w := newHarness(t, anAsk)
		w.agent.scores = []float64{3}
		w.answers(retry, retry, retry, message{"action": "continue"})
		w.done()
		require.Equal(t, []int{0, 1, 2, 3}, w.alone()["001"])
		require.Equal(t, []string{"g0.001.1.-.1", "g0.001.1.-.r1-1", "g0.001.1.-.r2-1", "g0.001.1.-.r3-1"},
			w.agent.ids[:4])
		require.NotContains(t, strings.Join(w.agent.ids[4:], " "), ".r",
			"what comes behind it is done for the first time")
	})
	t.Run("a gate", func(t *testing.T) {
		w := newHarness(t, gated)
		w.agent.will("g0.002.1.-.1", unsound)
		w.answers(message{"action": "retry"})
		w.ends(run.Done, "")
		require.Equal(t, map[string][]int{"001": {0}, "work/2": {0}, "002": {0, 1}}, w.alone())
	})
	t.Run("a rejected delivery, over two stages", func(t *testing.T) {
		w := newHarness(t, reviewed+"  - name: judge\n    steps:\n      - {role: reviewer}\n")
		w.agent.words = []string{"rejected", "approved"}
		w.answers(message{"action": "fix", "feedback": "say why"})
		w.ends(run.Done, "")
		require.Equal(t, map[string][]int{"001": {0, 1}, "002": {0, 1}}, w.alone())
	})
	t.Run("a loop that is sent back gets a new round", func(t *testing.T) {
		w := newHarness(
			t, strings.Replace(reviewed, "  - name: work\n",
				"  - name: work\n    dir: cycle-{n}\n    repeat: {max: 1, until: verdict == approved}\n",
				1)+"      - {role: reviewer}\n",
		)
		w.agent.words = []string{"rejected", "approved"}
		w.answers(message{"action": "fix", "feedback": "say why"})
		w.ends(run.Done, "")
		require.Equal(t, map[string][]int{"work/1": {0, 0}, "work/2": {0, 0}}, w.alone())
	})
}

func TestFailedAttemptKeepsEvidence(t *testing.T) {
	w := newHarness(t, twoPasses)
	out, reported := run.Blob{Digest: "half a page"}, run.Blob{Digest: "what it reported"}
	short := noSections
	short.Output, short.Envelope = &out, &reported
	w.agent.will(call(1, 1), goes(short))
	w.agent.will(call(1, 2), goes(short))
	w.agent.will(call(2, 1), func(ok contract.PassResult) (contract.PassResult, error) {
		ok.Envelope = &reported
		return ok, nil
	})
	w.done()
	attempts, ends := payloads[run.PassAttempt](w, run.KindPassAttempt), payloads[run.PassEnd](w, run.KindPassEnd)
	require.Len(t, attempts, 2)
	for _, a := range attempts {
		require.Equal(t, []any{&run.Blob{Digest: "prompt", Chars: 8}, &out, &reported},
			[]any{a.Prompt, a.Output, a.Envelope})
	}
	require.True(t, ends[0].Attempted)
	require.Equal(t, attempts[1].Call, ends[0].Call)
	require.Equal(t, []any{false, &reported}, []any{ends[1].Attempted, ends[1].Envelope})
}

func TestRoleAskedTwiceInRoundHasSeparateEvidence(t *testing.T) {
	w := newHarness(t, head+`
stages:
  - name: look
    dir: cycle-{n}
    repeat: {max: 1, until: score >= 1}
    steps: [{role: judge}, {together: [critic-A, critic-B]}, {role: critic-A}, {role: judge}]
`)
	w.agent.scores = []float64{0, 1}
	w.done()
	var dirs []string
	for _, p := range payloads[run.PassEnd](w, run.KindPassEnd) {
		dirs = append(dirs, p.Dir+" "+p.Role)
	}
	require.Equal(
		t, []string{
			"cycle-1 judge", "cycle-1 critic-A", "cycle-1 critic-B", "cycle-1/step-3 critic-A", "cycle-1/step-4 judge",
		}, dirs,
	)
}

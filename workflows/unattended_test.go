package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// unattended executes an unattended run. Questions that it asks all the same are halted after days; the result is who
// decided the first one, and how the run ended.
func (w *harness) unattended() (by string, status run.Status) {
	w.t.Helper()
	w.in.Start.Waits.Unattended = true
	var decided []run.QuestionDecided
	w.answering(func(int, run.Question) {
		w.env.RegisterDelayedCallback(func() { w.signal("decide", message{"action": "halt", "by": "ada"}) }, 100*time.Hour)
	})
	r, err := w.execute()
	require.NoError(w.t, err)
	for _, spec := range run.QuestionKinds() {
		decided = append(decided, payloads[run.QuestionDecided](w, spec.Decided)...)
	}
	require.NotEmpty(w.t, decided)
	return decided[0].DecidedBy, r.Status
}

// TestUnattendedRunAsksNobody: its questions are answered, and what an operator has to see still stops it.
func TestUnattendedRunAsksNobody(t *testing.T) {
	for _, row := range questions {
		t.Run(row.name, func(t *testing.T) {
			w := newHarness(t, row.src)
			row.hurt(w)
			by, status := w.unattended()
			if row.name == "hand-off" || row.name == "review" {
				require.Equal(t, []any{run.Unattended, run.Done}, []any{by, status})
				return
			}
			require.Equal(t, []any{"ada", run.Halted}, []any{by, status})
		})
	}
}

func TestUnattendedRunTakesTheActionOfExpiredQuestions(t *testing.T) {
	w := newHarness(t, anAsk)
	w.in.Start.Waits = run.Waits{ExpiresMS: (72 * time.Hour).Milliseconds(), OnExpiry: "halt"}
	w.waitsInPlan()
	by, status := w.unattended()
	require.Equal(t, []any{run.Unattended, run.Halted}, []any{by, status})
	require.Empty(t, payloads[run.QuestionReminded](w, run.KindQuestionReminded))
}

// TestUnattendedLoopContinuesAfterItsRounds: also where its condition is not met.
func TestUnattendedLoopContinuesAfterItsRounds(t *testing.T) {
	w := newHarness(t, anAsk+"notify: [{run: [tell], on: [question, end]}]\n")
	w.agent.scores = []float64{1, 1, 1, 1}
	by, status := w.unattended()
	require.Equal(t, []any{run.Unattended, run.Done}, []any{by, status})
	require.Equal(t, []string{"continue", "continue"}, w.decisions())
	require.Equal(t, []string{"end done"}, w.received.events(0), "no operator was asked")
}

// TestUnattendedRunAsksBeforeExternalAction: also if other steps or the next stage come first.
func TestUnattendedRunAsksBeforeExternalAction(t *testing.T) {
	const ask, other = "      - ask: 'Good?'\n", "      - run: make\n"
	const acts, next = "      - {run: publish, effect: external_action}\n", "  - name: later\n    steps:\n"
	for steps, want := range map[string]string{
		ask + acts:                      "ada",
		ask + other + acts:              "ada",
		ask + next + other + acts:       "ada",
		ask + other + ask + acts:        run.Unattended,
		acts + ask + other:              run.Unattended,
		ask + next + other + ask + acts: run.Unattended,
	} {
		w := newHarness(t, strings.Replace(reviewed, "delivery:", "#", 1)+steps)
		by, _ := w.unattended()
		require.Equal(t, want, by, steps)
	}
}

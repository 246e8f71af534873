package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// waitsInPlan has the steps that ask wait as long as the run does: a definition's waits are in its plan.
func (w *harness) waitsInPlan() {
	w.t.Helper()
	waits := w.in.Start.Waits
	q := pipeline.Questions{
		Remind:  time.Duration(waits.RemindMS) * time.Millisecond,
		Expires: time.Duration(waits.ExpiresMS) * time.Millisecond, OnExpiry: waits.OnExpiry,
	}
	for _, s := range w.plan.Stages {
		for _, r := range s.Rounds {
			for i := range r.Steps {
				if r.Steps[i].Kind == "ask" || r.Steps[i].IfFailing == "ask" {
					r.Steps[i].Questions = &q
				}
			}
		}
	}
	w.in.Start.Plan = stored(w.t, w.plan)
}

func TestQuestionExpiry(t *testing.T) {
	for _, row := range questions {
		for _, how := range []string{"halt", "continue", "remind"} {
			t.Run(row.name+" "+how, func(t *testing.T) {
				w := newHarness(t, row.src)
				row.hurt(w)
				if row.name == "gate" || row.name == "dirty target" { // one is enough
					w.agent.values, w.trees.dirty = w.agent.values[:min(1, len(w.agent.values))], min(1, w.trees.dirty)
				}
				w.in.Start.Waits = run.Waits{
					RemindMS: (48 * time.Hour).Milliseconds(), ExpiresMS: (72 * time.Hour).Milliseconds(),
					OnExpiry: how,
				}
				w.waitsInPlan()
				if how == "remind" {
					w.dir.when(row.requested, func() {
						w.env.RegisterDelayedCallback(func() { w.signal("decide", message{"action": "halt"}) },
							100*time.Hour)
					})
				}
				r, err := w.execute()
				require.NoError(t, err)
				want, reminders := run.Halted, []string{"1 after 48h0m0s", "2 expired after 72h0m0s"}
				if how == "continue" {
					want = row.onContinue
				}
				if how == "remind" {
					reminders = append(reminders, "3 after 96h0m0s")
				}
				require.Equal(t, want, r.Status)
				require.Equal(t, reminders, w.reminders(row.requested))
				by := map[string]string{"halt": "expiry", "continue": "expiry"}[how]
				require.Equal(t, by, w.decidedBy())
			})
		}
	}
}

// reminders are their numbers and how long after the question they came.
func (w *harness) reminders(requested run.Kind) []string {
	w.t.Helper()
	var asked time.Time
	var out []string
	for _, e := range w.dir.events(w.t) {
		at, err := time.Parse(run.TimeFormat, e.TS)
		require.NoError(w.t, err)
		switch e.Kind {
		case requested:
			asked = at
		case run.KindQuestionReminded:
			var p run.QuestionReminded
			e.Decode(&p)
			word := string(rune('0' + p.Number))
			if p.Expired {
				word += " expired"
			}
			out = append(out, word+" after "+at.Sub(asked).Round(time.Second).String())
		}
	}
	return out
}

// decidedBy is who has taken the only decision.
func (w *harness) decidedBy() string {
	w.t.Helper()
	var by []string
	for _, e := range w.dir.events(w.t) {
		switch e.Kind {
		case run.KindHandoffDecided, run.KindGateDecided, run.KindReviewDecided, run.KindDeliveryDecided:
			var p run.QuestionDecided
			e.Decode(&p)
			by = append(by, p.DecidedBy)
		}
	}
	require.Len(w.t, by, 1)
	return by[0]
}

package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

// anAsk asks after its first pass, and again where its loop does not come to an end.
var anAsk = strings.Replace(strings.Replace(aLoop, "steps: [{role: builder}]",
	"steps: [{role: builder}, {ask: \"Is this the right page?\"}]", 1),
	"until: score >= 3}", "until: score >= 3, otherwise: ask}", 1)

func (w *harness) decisions() []string {
	return fields(payloads[run.QuestionDecided](w, run.KindHandoffDecided),
		func(d run.QuestionDecided) string { return d.Action })
}

func TestRetryFeedbackRepeatsStep(t *testing.T) {
	w := newHarness(t, anAsk)
	w.agent.scores = []float64{3}
	var received []string
	w.composing = func(in contract.ComposeInput) { received = append(received, in.Context.Feedback) }
	w.answers(message{"action": "retry_feedback", "feedback": "shorter"}, message{"action": "continue"})
	w.done()
	require.Equal(t, []string{"retry_feedback", "continue"}, w.decisions())
	require.Equal(t, []string{"", "shorter"}, received[:2], "the feedback is for the step that is repeated")
	for _, words := range received[2:] {
		require.Empty(t, words, "and for no other")
	}
	ids := payloads[run.QuestionRequested](w, run.KindHandoffRequested)
	require.NotEqual(t, ids[0].ID, ids[1].ID)
}

// TestLastAnswerInLoopDecidesItsEnd asks in each round of a loop. The loop asks only about what no answer was about.
func TestLastAnswerInLoopDecidesItsEnd(t *testing.T) {
	const judge, ask = "      - role: judge\n", "      - ask: Is it good?\n"
	always, rejected := run.HandoffFeedbackAlways, run.HandoffFeedbackOnReject
	for steps, want := range map[string][]string{
		judge + ask: {always, always, always, always, always},
		ask + judge: {always, always, always, always, always, rejected},
	} {
		w := newHarness(t, strings.Replace(anAsk, judge, steps, 1))
		w.agent.scores = []float64{1, 1, 1, 1}
		var answers []message
		for range 6 {
			answers = append(answers, message{"action": "continue"})
		}
		w.answers(answers...)
		w.done()
		require.Equal(t, want, fields(w.asked(run.KindHandoffRequested),
			func(q run.QuestionRequested) string { return q.Type }), "in the build, three rounds and the closing check")
	}
}

func TestFeedbackSizeLimit(t *testing.T) {
	s := run.State{Questions: []run.Question{{Kind: run.QuestionHandoff, ID: "h", Actions: []string{"retry_feedback"}}}}
	require.NoError(
		t, workflows.CheckDecision(s, contract.Message{Action: "retry_feedback",
			Feedback: strings.Repeat("x", 7<<10)}),
	)

	w := newHarness(t, anAsk)
	w.in.Options.ContinueAfter = 1
	w.agent.scores = []float64{3}
	long := strings.Repeat("<p>", 450) // 6 bytes of JSON for each bracket
	w.answers(message{"action": "retry_feedback", "feedback": strings.Repeat(long, 2)},
		message{"action": "retry_feedback", "feedback": long}, message{"action": "continue"})
	largest := 0
	w.dir.when(run.KindDecisionRefused,
		func() { w.signal("decide", message{"action": "retry_feedback", "feedback": long, "note": "shorter"}) })
	w.chain(func(next contract.Input) { largest = max(largest, len(asJSON(t, next.Snapshot))) })
	require.Less(t, largest, 64<<10)
	require.Contains(t, payloads[run.DecisionRefused](w, run.KindDecisionRefused)[0].Reason, "the maximum is 8192")
}

func TestMessagesAreRedacted(t *testing.T) {
	w := newHarness(t, anAsk)
	w.secret = "open-sesame"
	w.agent.scores = []float64{3}
	w.in.Start.Task = "use open-sesame" // redacted by the worker of the directory, which may know more secrets
	var received, tasks []string
	w.composing = func(in contract.ComposeInput) {
		received, tasks = append(received, in.Context.Feedback), append(tasks, in.Context.Task)
	}
	w.answers(message{
		"action": "retry_feedback", "feedback": "say open-sesame", "note": "open-sesame!", "by": "open-sesame",
	}, message{"action": "open-sesame"})
	w.dir.when(run.KindDecisionRefused,
		func() { w.update("decide", message{"action": "continue", "note": "no open-sesame"}) })
	w.done()
	require.Equal(t, "say <hidden>", received[1])
	require.Equal(t, "use <hidden>", tasks[0])
	require.Equal(t, "use <hidden>", payloads[run.RunStart](w, run.KindRunStart)[0].Task)
	d := payloads[run.QuestionDecided](w, run.KindHandoffDecided)
	require.Equal(t, []string{"say <hidden>", "<hidden>!", "<hidden>", "no <hidden>"},
		[]string{d[0].Feedback, d[0].Note, d[0].DecidedBy, d[1].Note})
	require.Contains(t, payloads[run.DecisionRefused](w, run.KindDecisionRefused)[0].Reason,
		`"<hidden>" is not an action`)
	for _, line := range w.dir.lines {
		require.NotContains(t, line, w.secret)
	}
}

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
				var decided []run.QuestionDecided
				for _, spec := range run.QuestionKinds() {
					decided = append(decided, payloads[run.QuestionDecided](w, spec.Decided)...)
				}
				require.Len(t, decided, 1)
				require.Equal(t, map[string]string{"halt": "expiry", "continue": "expiry"}[how], decided[0].DecidedBy)
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

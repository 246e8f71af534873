package workflows_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// decisionPlace is a place at which a run asks, with a trigger.
type decisionPlace struct {
	place, trigger, src string
	hurt                func(*harness)
}

var decisionPlaces = []decisionPlace{
	{"ask step", "asked", reviewed + "      - ask: 'Good?'\n", nil},
	{"ask step", "rejected", askAfter("human_feedback_always"), says("rejected")},
	{"ask step", "approved", askAfter("human_feedback_always"), says("approved")},
	{"ask step", "incomplete", askAfter("human_feedback_on_reject"), says("incomplete")},
	{"ask step", "scope_expansion", askAfter("human_feedback_always"), says("scope_expansion")},
	{"ask step", "bypass", askAfter("human_bypass"), says("rejected")},
	{"end of loop", "rejected", loops(implementation + strings.Replace(reviewFirst, "max: 2", "max: 1", 1)),
		says("rejected rejected")},
	{"gate", "check_failed", gated, func(w *harness) { w.agent.values = []string{"failed"} }},
	{"gate of a reply", "check_failed", gated, func(w *harness) { w.agent.will("g0.002.1.-.1", unsound) }},
	{"no verdict", "check_failed", judged, func(w *harness) {
		w.agent.will("g0.002.1.-.1", goes(withoutVerdict))
		w.agent.will("g0.002.1.-.2", goes(withoutVerdict))
	}},
	{"plan review", "plan_ready", planning, nil},
	{"delivery", "rejected", judged, says("rejected")},
	{"delivery", "definition_changed", reviewed, func(w *harness) { w.trees.found.Definition = []string{"page.yaml"} }},
	{"delivery", "dirty_target", reviewed, func(w *harness) { w.trees.dirty = 1 }},
	{"replay", "effect", twoPasses, func(w *harness) { branched(w, run.ModeReplay, run.RequireHuman) }},
	{"replay", "external_action", acting(run.EffectExternal), func(w *harness) {
		branched(w, run.ModeReplay, run.RequireHuman)
	}},
	{"replay", "unrecorded_action", acting(run.EffectExternal), func(w *harness) {
		branched(w, run.ModeReplay, run.UseRecorded)
		w.agent.will(call(2, 1), unrecorded)
	}},
	{"replayed delivery", "effect", reviewed, func(w *harness) {
		w.in.Start.Source = &run.Source{RunID: "their-run", Checkpoint: "cp-1", Mode: run.ModeReplay,
			Replay: run.UseRecorded}
		w.in.Start.State = &run.State{Version: run.StateVersion, Next: run.Place{Stage: 1, Round: 1},
			Tree: &run.Blob{Digest: "tree"}, Commit: "c"}
	}},
}

func askAfter(kind string) string {
	return reviewed + "      - role: reviewer\n      - ask: {question: 'Good?', type: " + kind + "}\n"
}

func says(words string) func(*harness) {
	return func(w *harness) { w.agent.words = strings.Fields(words) }
}

var allActions = []string{"continue", "retry_feedback", "continue_with_waiver", "retry", "fix", "approve", "apply",
	"skip", "halt"}

// TestDecisionTable compares testdata/decisions.txt with what each action that is offered does at each place, and what
// an expiry does: the calls before and after the answer (i implementer, r reviewer, b builder, p reader, t tests; in
// upper case with the feedback; D delivery attempted), the end, and the number of questions. Later questions are
// answered with halt. Actions that are not offered are refused. Each trigger of each kind of question has a place, and
// those of runs across projects are in TestRunAcrossProjectsByOutcome, and those of pull requests are settled in
// TestIssueBecomesAMergedPullRequest.
func TestDecisionTable(t *testing.T) {
	var got strings.Builder
	placed := map[string]bool{}
	for _, row := range decisionPlaces {
		line := func(answer, outcome string) {
			fmt.Fprintf(&got, "%-17s %-17s %-20s %s\n", row.place, row.trigger, answer, outcome)
		}
		q := row.first(t)
		placed[string(q.Kind)+" "+q.Trigger] = true
		for _, action := range allActions {
			if slices.Contains(q.Actions, action) {
				line(action, row.decided(t, action, ""))
			}
		}
		for _, onExpiry := range []string{"halt", "continue"} {
			line("expiry: "+onExpiry, row.decided(t, "", onExpiry))
		}
	}
	want, err := os.ReadFile("testdata/decisions.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
	for _, spec := range run.QuestionKinds() {
		for _, offer := range spec.Offers {
			if run.FollowsPull(offer.Trigger) || slices.Contains([]string{run.TriggerAcceptance, run.TriggerProject, run.TriggerBlocked, run.TriggerUnprepared},
				offer.Trigger) {
				continue
			}
			require.True(t, placed[string(spec.Kind)+" "+offer.Trigger], "%s %s has no place", spec.Kind, offer.Trigger)
		}
		for _, answer := range spec.Answers {
			require.Contains(t, allActions, answer.Action)
		}
	}
}

// first returns the first question. All actions that it does not offer are refused, and the run still waits.
func (d decisionPlace) first(t *testing.T) (first run.Question) {
	t.Helper()
	w := d.harness(t)
	refused := map[string]*reply{}
	w.answering(func(n int, q run.Question) {
		require.Equal(t, 1, n)
		require.Equal(t, d.trigger, q.Trigger)
		first = q
		for _, action := range allActions {
			if !slices.Contains(q.Actions, action) {
				refused[action] = &reply{}
				w.env.UpdateWorkflow("decide", "", refused[action], message{"action": action, "feedback": "more"})
			}
		}
		w.env.RegisterDelayedCallback(func() { w.signal("decide", message{"action": "halt"}) }, time.Minute)
	})
	w.executeHalted()
	require.Len(t, refused, len(allActions)-len(first.Actions))
	for action, r := range refused {
		require.ErrorContains(t, r.refused, action+" is not offered here: use one of "+strings.Join(first.Actions, ", "))
	}
	return first
}

func (d decisionPlace) harness(t *testing.T) *harness {
	t.Helper()
	w := newHarness(t, d.src)
	if d.hurt != nil {
		d.hurt(w)
	}
	return w
}

// decided answers the first question with an action, or lets it expire, and describes what follows.
func (d decisionPlace) decided(t *testing.T, action, onExpiry string) string {
	t.Helper()
	w := d.harness(t)
	var called []string
	w.composing = func(in contract.ComposeInput) { called = append(called, letterOf(w, in)) }
	if onExpiry != "" {
		w.in.Start.Waits = run.Waits{ExpiresMS: (10 * time.Minute).Milliseconds(), OnExpiry: onExpiry}
		w.waitsInPlan()
	}
	w.answering(func(n int, _ run.Question) {
		if n > 1 || onExpiry != "" {
			w.signal("decide", message{"action": "halt"})
			return
		}
		called = append(called, "|")
		w.signal("decide", message{"action": action, "feedback": "more", "by": "ada"})
	})
	r, err := w.execute()
	require.NoError(t, err)
	return strings.Join(called, " ") + strings.Repeat(" D", len(w.trees.delivers)) + " → " + string(r.Status) +
		questionsOf(w, onExpiry != "")
}

// letterOf abbreviates a call; in upper case: with feedback.
func letterOf(w *harness, in contract.ComposeInput) string {
	step, _ := w.plan.Stages[in.At.Stage].RoundAt(in.At.Round).At(in.At.Step)
	letter := map[string]string{"implementer": "i", "reviewer": "r", "builder": "b", "reader": "p", "": "t"}[step.Role]
	if in.Context.Feedback == "more" {
		return strings.ToUpper(letter)
	}
	return letter
}

// questionsOf counts the questions, and describes what the answers left.
func questionsOf(w *harness, expired bool) string {
	asked, text := 0, ""
	for _, spec := range run.QuestionKinds() {
		asked += len(payloads[run.QuestionRequested](w, spec.Requested))
		for _, d := range payloads[run.QuestionDecided](w, spec.Decided) {
			if expired && d.DecidedBy == "expiry" {
				text = ", " + d.Action
			}
		}
	}
	s := w.dir.state(w.t)
	if s.Markers.Waiver != nil {
		text += ", waived"
	}
	if s.Markers.DeliveryOverride != nil {
		text += ", override"
	}
	return ", " + run.Plural(asked, "question") + text
}

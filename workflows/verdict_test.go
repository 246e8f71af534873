package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

func TestOnlyApprovedChangesAreDeliveredUnasked(t *testing.T) {
	const loop = "  - name: rounds\n    repeat: {max: 1, until: CONDITION}\n    steps:\n      - {role: reviewer, as: " +
		"review}\n"
	for name, row := range map[string]struct {
		until    string // of the loop that the reviewer is in; empty: it is in none
		more     string // stages behind it
		verdicts []string
		question string // empty: none is asked
	}{
		"approved":              {verdicts: []string{"approved"}},
		"approved, in capitals": {verdicts: []string{"APPROVED"}},
		"another word": {
			verdicts: []string{"needs_work"},
			question: "The last verdict is needs_work, which does not approve the changes",
		},
		"no word": {
			verdicts: []string{""}, question: "No verdict approves the current changes",
		},
		"rejected":                        {verdicts: []string{"rejected"}, question: "The last verdict is rejected."},
		"the one that the loop waits for": {until: "verdict == ship", verdicts: []string{"ship"}},
		"not the one the loop waits for": {
			until: "verdict == ship", verdicts: []string{"approved"},
			question: "The last verdict is approved, which does not approve the changes",
		},
		"needs_work at the end of the loop": {
			until: "verdict == approved", verdicts: []string{"needs_work"}, question: "The last verdict is needs_work",
		},
		"by the name of the step": {until: "review == ship", verdicts: []string{"ship"}},
		"not by the name of the step": {
			until: "review == ship", verdicts: []string{"again"}, question: "The last verdict is again",
		},
		"any but one": {until: "verdict != again", verdicts: []string{"fine"}},
		"any but one, and rejected": {
			until: "verdict != again", verdicts: []string{"REJECTED"}, question: "The last verdict is REJECTED.",
		},
		"the loop ends for another reason": {
			until: "verdict == ship or tests == ok", verdicts: []string{"again"}, question: "The last verdict is again",
		},
		"any but one, by name": {until: "review != gone", verdicts: []string{"fine"}},
		"the same reviewer once more": {
			until: "verdict == ship", more: "  - name: again\n    steps: [{role: reviewer}]\n",
			verdicts: []string{"ship", "ship"},
		},
		"the last one counts": {
			until: "verdict == ship", more: "  - name: again\n    steps: [{role: reviewer}]\n",
			verdicts: []string{"ship", "hm"}, question: "The last verdict is hm",
		},
		"changed after it was approved": {
			more: "  - name: more\n    steps: [{role: implementer}]\n", verdicts: []string{"approved"},
			question: "No verdict approves",
		},
		"changed after the loop was through": {
			until: "verdict == ship", more: "  - name: more\n    steps: [{role: implementer}]\n",
			verdicts: []string{"ship"},
			question: "No verdict approves",
		},
		"two, and one does not approve": {
			more:     "  - name: more\n    steps: [{together: [second, reviewer]}]\n",
			verdicts: []string{"approved", "no", "approved"}, question: ", which does not approve the changes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			src := strings.Replace(judged, "stages:\n",
				"  second: {prompt: prompt.md, gives: report, verdict: {find: 'VERDICT: (\\w+)'}}\nstages:\n", 1) +
				row.more
			if row.until != "" {
				src = strings.Replace(src, "      - role: reviewer\n", strings.Replace(loop, "CONDITION", row.until, 1),
					1)
			}
			if strings.Contains(row.until, "tests == ok") {
				src = strings.Replace(src, "as: review}\n", "as: review}\n      - {run: make test, as: tests}\n", 1)
			}
			w := newHarness(t, src)
			w.agent.words = row.verdicts
			w.answers(message{"action": "halt"})
			if row.question == "" {
				w.ends(run.Done, "")
				require.Len(t, w.trees.delivers, 1)
				return
			}
			w.ends(run.Halted, "delivery.decided")
			require.Empty(t, w.trees.delivers)
			asked := w.asked(run.KindDeliveryRequested)
			require.Len(t, asked, 1)
			require.Contains(t, asked[0].Question, row.question)
			require.Equal(t, run.TriggerRejected, asked[0].Trigger)
		})
	}
}

func TestLoopEndWithoutReviewIsNotApproved(t *testing.T) {
	w := newHarness(t, strings.Replace(reviewed, "  - name: work\n    steps:\n      - {role: implementer}\n",
		"  - name: work\n    repeat: {max: 2, until: tests == ok}\n    steps: [{role: implementer}, {run: make "+
			"test, as: "+
			"tests}, {role: reviewer}]\n", 1))
	w.answers(message{"action": "halt"})
	w.ends(run.Halted, "delivery.decided")
	require.Equal(t, "implementer run", w.called())
	require.Contains(t, w.asked(run.KindDeliveryRequested)[0].Question, "No verdict approves the current changes")
}

func TestVerdictOfEarlierRelease(t *testing.T) {
	for verdict, asks := range map[string]bool{"approved": false, "rejected": true, "fine": true} {
		t.Run(verdict, func(t *testing.T) {
			w := newHarness(t, judged)
			w.cutOff()
			w.reopened(workflows.Reopen{Epoch: 2, From: run.Cancelled})
			w.in.Start.Judged, w.in.Snapshot.State.Verdict, w.in.Snapshot.State.Next = false, verdict, run.Place{
				Stage: 1, Round: 1,
			}
			w.answers(message{"action": "halt"})
			if asks {
				w.ends(run.Halted, "delivery.decided")
				return
			}
			w.ends(run.Done, "")
			require.Len(t, w.trees.delivers, 1)
		})
	}
}

// withoutVerdict is a reply that a reviewer has given no verdict in.
var withoutVerdict = contract.PassResult{
	Outcome: "validation-failed", Structural: true, Unjudged: true, Message: "the reply has no verdict",
	Reply: &run.Blob{Digest: "words"}, Output: &run.Blob{Digest: "words"},
}

// TestMissingVerdictFailsAttempt: a reviewer without a verdict is asked once more.
func TestMissingVerdictFailsAttempt(t *testing.T) {
	w := newHarness(t, judged)
	w.agent.will("g0.002.1.-.1", goes(withoutVerdict))
	w.ends(run.Done, "")
	require.Equal(t, "implementer reviewer reviewer", w.called())
	require.Empty(t, w.asked(run.KindGateRequested))
}

// TestWaivedVerdictApprovesNothing: after a waiver of a verdict, the delivery asks.
func TestWaivedVerdictApprovesNothing(t *testing.T) {
	w := newHarness(t, judged)
	w.agent.will("g0.002.1.-.1", goes(withoutVerdict))
	w.agent.will("g0.002.1.-.2", goes(withoutVerdict))
	w.answers(message{"action": "continue_with_waiver", "feedback": "I have read it"}, message{"action": "approve"})
	s := w.ends(run.Done, "")
	require.Equal(t, run.TriggerRejected, w.asked(run.KindDeliveryRequested)[0].Trigger)
	require.NotNil(t, s.Markers.DeliveryOverride)
}

// TestAcceptedPlanIsNotReviewedAgain: the answer "continue" at an ask step accepts the plan, unless work follows it.
func TestAcceptedPlanIsNotReviewedAgain(t *testing.T) {
	const ask = "    steps:\n      - {role: reader}\n      - ask: Is this the right plan?\n"
	again, goOn := message{"action": "retry_feedback", "feedback": "say when"}, message{"action": "continue"}
	for name, row := range map[string]struct {
		steps   string
		answers []message
		reviews int
	}{
		"continue":        {ask, []message{goOn}, 0},
		"once more first": {ask, []message{again, goOn}, 0},
		"more after it":   {ask + "      - {role: reader}\n", []message{goOn, {"action": "approve"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, strings.Replace(planning, "    steps: [{role: reader}]\n", row.steps, 1))
			w.answers(row.answers...)
			w.ends(run.Done, map[bool]string{true: run.ReasonReviewApproved}[row.reviews > 0])
			require.Len(t, w.asked(run.KindReviewRequested), row.reviews)
		})
	}
}

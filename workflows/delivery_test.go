package workflows_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// judged is work that somebody judges before it is delivered.
const judged = reviewed + "      - role: reviewer\n"

// deliveries are what the journal says of them.
func (w *harness) deliveries() []run.DeliveryCompleted {
	return payloads[run.DeliveryCompleted](w, run.KindDeliveryCompleted)
}

func TestDelivery(t *testing.T) {
	w := newHarness(t, judged)
	w.in.Start.Task = "Do it"
	s := w.ends(run.Done, "")
	require.Equal(t, []contract.DeliverInput{{
		Target: w.in.Target, Workspace: *w.in.Start.Workspace, Commit: "commit of tree of run-1/g0.001.1.-.1",
		PlanUse: w.in.Plans[0],
		Message: "Do it\n\nPassbook-Run: run-1\n",
	}}, w.trees.delivers)
	require.Equal(
		t, []run.DeliveryCompleted{{
			Delivered: true, Diff: "the diff", Commit: "delivered", To: "branch", Target: "result", Files: 1,
		}}, w.deliveries(),
	)
	require.Nil(t, s.Markers.DeliveryOverride)
	require.Len(t, w.trees.carries, 1, "who gives no changes leaves the tree alone")
	_, rest, _ := strings.Cut(w.trees.carries[0].Message, "\n")
	require.Equal(t, "\nPassbook-Run: run-1\nPassbook-Step: 001\n", rest)
}

func TestNoDeliveryKeepsRunBranch(t *testing.T) {
	w := newHarness(t, judged)
	w.in.Start.Delivers = false
	w.agent.words = []string{"rejected"}
	w.ends(run.Done, "")
	require.Empty(t, w.trees.looks)
	require.Empty(t, w.trees.delivers)
	require.Empty(t, w.deliveries())
}

func TestOutcomeByVerdictAndDelivery(t *testing.T) {
	override := func(action string) run.Markers { return run.Markers{DeliveryOverride: &run.Override{Action: action}} }
	for _, row := range []struct {
		name, verdict, action string
		noDiff                bool
		status                run.Status
		reason                string
		delivered             bool
		marks                 run.Markers // no_op, no_change, rejected and override's action
	}{
		{"approved", "approved", "", false, run.Done, "", true, run.Markers{}},
		{"approved, no changes", "approved", "", true, run.Done, "", false, run.Markers{NoChangeOutcome: true}},
		{"rejected, no changes", "REJECTED", "", true, run.Halted, "final_acceptance_no_diff", false,
			run.Markers{NoOpOutcome: true}},
		{"another verdict, no changes", "needs_work", "", true, run.Halted, "final_acceptance_no_diff", false,
			run.Markers{NoOpOutcome: true}},
		{"no verdict, approve", "", "approve", false, run.Done, "", true, override("approve")},
		{"approve", "REJECTED", "approve", false, run.Done, "", true, override("approve")},
		{"apply", "rejected", "apply", false, run.Done, "", true, override("apply")},
		{"skip", "rejected", "skip", false, run.Halted, "final_acceptance_rejected", false,
			run.Markers{RejectedOutcome: true}},
		{"halt", "rejected", "halt", false, run.Halted, "delivery.decided", false, run.Markers{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newHarness(t, judged)
			w.agent.words = []string{row.verdict}
			if row.noDiff {
				w.trees.found = contract.DeliverResult{}
			}
			if row.action != "" {
				w.answers(message{"action": row.action, "by": "ada"})
			}
			s := w.ends(row.status, row.reason)
			require.Equal(t, row.delivered, len(w.trees.delivers) == 1)
			require.Equal(t, row.marks.NoOpOutcome, s.Markers.NoOpOutcome)
			require.Equal(t, row.marks.NoChangeOutcome, s.Markers.NoChangeOutcome)
			require.Equal(t, row.marks.RejectedOutcome, s.Markers.RejectedOutcome)
			asked := w.asked(run.KindDeliveryRequested)
			require.Equal(t, row.action != "", len(asked) == 1)
			if row.action != "" {
				require.Equal(t, []string{"fix", "approve", "apply", "skip", "halt"}, asked[0].Actions)
				require.Equal(t, "the diff", asked[0].Digest)
				require.Equal(t, run.TriggerRejected, asked[0].Trigger)
			}
			if o := row.marks.DeliveryOverride; o != nil {
				require.Equal(t, []string{o.Action, "ada"},
					[]string{s.Markers.DeliveryOverride.Action, s.Markers.DeliveryOverride.By})
				require.Equal(t, o.Action, w.trees.delivers[0].Action)
				require.Equal(t, asked[0].ID, w.deliveries()[0].ID)
				require.Equal(t, o.Action, w.deliveries()[0].Action)
			} else {
				require.Nil(t, s.Markers.DeliveryOverride)
			}
			if row.action == "skip" {
				require.False(t, w.deliveries()[0].Delivered)
				require.Equal(t, "the diff", w.deliveries()[0].Diff)
				require.Equal(t, "an operator decided not to deliver", w.deliveries()[0].Message)
			}
			if row.action == "halt" {
				require.Empty(t, w.deliveries())
			}
		})
	}
}

func TestFixRepeatsWork(t *testing.T) {
	for name, row := range map[string]struct {
		verdicts []string
		then     []message
		override bool
	}{
		"approved then":  {[]string{"rejected", "approved"}, nil, false},
		"rejected again": {[]string{"rejected", "rejected"}, []message{{"action": "approve"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, judged)
			w.agent.words = row.verdicts
			received := map[string]string{}
			w.composing = func(in contract.ComposeInput) {
				if in.Context.Feedback != "" {
					received[w.plan.Stages[0].Rounds[0].Steps[in.At.Step].Role] = in.Context.Feedback
				}
			}
			w.answers(append([]message{{"action": "fix", "feedback": "the tests are missing"}}, row.then...)...)
			s := w.ends(run.Done, "")
			require.Equal(t, "implementer reviewer implementer reviewer", w.called())
			require.Equal(t, map[string]string{"implementer": "the tests are missing",
				"reviewer": "the tests are missing"},
				received)
			require.Equal(t, w.asked(run.KindDeliveryRequested)[0].ID, w.agent.inputs[2].DecisionID,
				"another question, even in the same words")
			require.Len(t, w.trees.delivers, 1)
			require.Equal(t, row.override, s.Markers.DeliveryOverride != nil)
		})
	}
}

func TestLastVerdictCounts(t *testing.T) {
	const checks = "  - name: checks\n    steps: [{run: make lint}, {ask: {question: Sure, type: " +
		"human_feedback_on_reject}}]\n"
	w := newHarness(t, judged+checks)
	w.ends(run.Done, "")
	require.Empty(t, payloads[run.QuestionRequested](w, run.KindHandoffRequested),
		"what was approved is not asked about")

	w = newHarness(t, judged+checks)
	w.agent.words = []string{"rejected"}
	w.answers(message{"action": "continue"}, message{"action": "skip"})
	w.ends(run.Halted, "final_acceptance_rejected")
	require.Equal(t, "rejected", payloads[run.QuestionRequested](w, run.KindHandoffRequested)[0].Verdict)
	require.Contains(t, w.asked(run.KindDeliveryRequested)[0].Question, "The last verdict is rejected.")
}

func TestFixStartsAtLastWorkingStep(t *testing.T) {
	const (
		once = "  - name: once\n    steps: [{role: reviewer}]\n"
		loop = "  - name: loop\n    repeat: {max: 1, until: verdict == approved}\n    steps: [{role: reviewer}, " +
			"{role: implementer}]\n"
		noReason = "  - name: lint\n    steps: [{run: make lint}]\n"
	)
	for name, row := range map[string]struct {
		stages, called string
		from           int
	}{
		"an earlier stage": {once + noReason, "implementer reviewer run implementer reviewer run", 3},
		"a loop":           {loop, "implementer reviewer implementer reviewer implementer reviewer", 4},
		"a loop that is not last": {
			loop + once, "implementer reviewer implementer reviewer reviewer implementer reviewer reviewer", 5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, reviewed+row.stages)
			w.agent.words = slices.Repeat([]string{"rejected"}, strings.Count(row.called, "reviewer")-1)
			if strings.HasPrefix(name, "a loop that") {
				w.agent.words = []string{"rejected", "rejected", "rejected"}
			}
			var received []string
			w.composing = func(in contract.ComposeInput) { received = append(received, in.Context.Feedback) }
			w.answers(message{"action": "fix", "feedback": "more"})
			w.ends(run.Done, "")
			require.Equal(t, row.called, w.called())
			require.Equal(t, "more", received[row.from], "the first step that is done again has the person's words")
			require.Empty(t, strings.Join(received[:row.from], ""))
		})
	}
}

func TestDirtyTargetAsks(t *testing.T) {
	for name, row := range map[string]struct {
		then  string
		tries int
	}{"cleaned": {"retry", 3}, "skipped": {"skip", 2}} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, judged)
			w.trees.dirty = 2
			w.answers(message{"action": "retry"}, message{"action": row.then})
			s := w.ends(run.Done, "")
			require.Len(t, w.trees.delivers, row.tries)
			asked := w.asked(run.KindDeliveryRequested)
			require.Len(t, asked, 2)
			require.Equal(t, []string{"retry", "skip", "halt"}, asked[0].Actions)
			require.Equal(t, "the target has changes of its own in a.txt", asked[0].Question)
			require.False(t, s.Markers.RejectedOutcome || s.Markers.NoOpOutcome || s.Markers.NoChangeOutcome)
			require.Equal(t, name == "cleaned", s.Delivery != nil && s.Delivery.Delivered)
		})
	}
}

func TestRejectedDeliveryToDirtyTarget(t *testing.T) {
	for _, action := range []string{"approve", "apply"} {
		for _, last := range []string{"retry", "skip"} {
			t.Run(action+" "+last, func(t *testing.T) {
				w := newHarness(t, judged)
				w.agent.words = []string{"rejected"}
				w.trees.dirty = 1
				w.answers(message{"action": action}, message{"action": last})
				s := w.ends(run.Done, "")
				require.Equal(t, action, s.Markers.DeliveryOverride.Action)
				for _, d := range w.trees.delivers {
					require.Equal(t, action, d.Action, "into the checkout, or not")
				}
				require.Equal(t, last == "retry", w.deliveries()[0].Delivered)
			})
		}
	}
}

// TestPlanReview: the result of a planning run is reviewed, and planned again with the feedback.
func TestPlanReview(t *testing.T) {
	w := newHarness(t, planning)
	var received []string
	w.composing = func(in contract.ComposeInput) { received = append(received, in.Context.Feedback) }
	w.answers(message{"action": "retry_feedback", "feedback": "say when"}, message{"action": "approve"})
	var status run.Status
	w.at(time.Minute, func() { status = w.status().Status })
	w.ends(run.Done, run.ReasonReviewApproved)
	require.Equal(t, run.AwaitingHumanReview, status)
	require.Equal(t, []string{"", "say when"}, received)
	asked := w.asked(run.KindReviewRequested)
	require.Len(t, asked, 2)
	require.Equal(t, []string{"approve", "retry_feedback", "halt"}, asked[0].Actions)
	require.Equal(t, []run.Attached{{Name: "result", Digest: "reply of run-1/g0.001.1.-.1"}}, asked[0].Artifacts)
}

func TestFullDiskDuringDelivery(t *testing.T) {
	for name, verdict := range map[string]string{"delivered at once": "approved", "asked about first": "rejected"} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, judged)
			w.agent.words = []string{verdict}
			w.trees.full = 2
			if verdict == "rejected" {
				w.answers(message{"action": "approve", "by": "ada"})
			}
			w.env.RegisterDelayedCallback(func() { w.signal("resume", nil) }, 10*time.Minute)
			s := w.ends(run.Done, "")
			require.Empty(t, s.InvalidTransition)
			require.Len(t, payloads[run.RunPaused](w, run.KindRunPaused), 1)
			require.Len(t, payloads[run.RunResumed](w, run.KindRunResumed), 1)
			require.Len(t, w.trees.delivers, 1)
			require.Len(t, w.deliveries(), 1)
		})
	}
}

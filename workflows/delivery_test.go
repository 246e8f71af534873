package workflows_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// judged is work that is reviewed before it is delivered.
const judged = reviewed + "      - role: reviewer\n"

// deliveries are the journaled deliveries.
func (w *harness) deliveries() []run.DeliveryCompleted {
	return payloads[run.DeliveryCompleted](w, run.KindDeliveryCompleted)
}

func TestDelivery(t *testing.T) {
	w := newHarness(t, judged)
	w.in.Start.Task = "Do it"
	s := w.ends(run.Done, "")
	at := w.in.Target
	at.Epoch, at.Seq = 1, 6 // what follows is not written yet
	require.Equal(t, []contract.DeliverInput{{
		Target: at, Workspace: *w.in.Start.Workspace, Commit: "commit of tree of run-1/g0.001.1.-.1",
		Tree: &run.Blob{Digest: "tree of run-1/g0.001.1.-.1"}, PlanUse: w.planUse(),
		Message: "Do it\n\nPassbook-Run: run-1\n",
	}}, w.trees.delivers)
	require.Equal(
		t, []run.DeliveryCompleted{{
			Delivered: true, Diff: "the diff", Commit: "delivered", To: "branch", Target: "result", Files: 1,
		}}, w.deliveries(),
	)
	require.Nil(t, s.Markers.DeliveryOverride)
	require.Equal(t, []run.WorkspaceUpdated{{Step: "001", Call: "run-1/" + call(1, 1), Changed: 1,
		Tree:   run.Blob{Digest: "tree of run-1/" + call(1, 1)},
		Commit: "commit of tree of run-1/" + call(1, 1)}}, payloads[run.WorkspaceUpdated](w, run.KindWorkspaceUpdated))
	require.Len(t, w.trees.carries, 1, "a review changes no tree")
	synced := w.trees.carries[0]
	require.Equal(t, "tree of run-1/"+call(1, 1), synced.Tree.Tree.Digest)
	require.Equal(t, *w.in.Start.Workspace, synced.Tree.Workspace)
	require.Equal(t, w.planUse(), synced.Tree.PlanUse)
	require.Equal(t, "first tree", synced.Previous.Digest)
	_, rest, _ := strings.Cut(w.trees.carries[0].Message, "\n")
	require.Equal(t, "\nPassbook-Run: run-1\nPassbook-Step: 001\n", rest)
}

// TestFailedRunNamesItsCause: without the words of the engine that carried the error.
func TestFailedRunNamesItsCause(t *testing.T) {
	w := newHarness(t, judged)
	w.trees.refuses = temporal.NewNonRetryableApplicationError("the source has no branch", contract.ErrBadInput, nil)
	_, err := w.execute()
	require.Error(t, err)
	require.Equal(t, "inspect the changes to deliver: the source has no branch", w.dir.state(t).Reason)
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
		{"halt", "rejected", "halt", false, run.Halted, "delivery_halt", false, run.Markers{}},
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
			require.Equal(t, "the target has other changes in a.txt", asked[0].Question)
			require.False(t, s.Markers.RejectedOutcome || s.Markers.NoOpOutcome || s.Markers.NoChangeOutcome)
			require.Equal(t, name == "cleaned", s.Delivery != nil && s.Delivery.Delivered)
		})
	}
}

// TestEditAfterTheVerdict: the work that an operator has changed needs another decision, unless it is not delivered anyway.
func TestEditAfterTheVerdict(t *testing.T) {
	for name, answers := range map[string][]message{
		"delivered": {{"action": "retry"}, {"action": "approve"}}, "not delivered": {{"action": "skip"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, judged)
			w.trees.dirty = 1
			w.dir.mended = &run.WorkspaceUpdated{Tree: run.Blob{Digest: "mended"}, Commit: "by hand", Cause: run.CauseEdited,
				Changed: 1}
			w.answers(answers...)
			w.ends(run.Done, "")
			asked := w.asked(run.KindDeliveryRequested)
			require.Equal(t, run.TriggerDirtyTarget, asked[0].Trigger)
			require.Len(t, asked, len(answers))
			if name == "delivered" {
				require.Equal(t, run.TriggerRejected, asked[1].Trigger)
				require.Equal(t, "by hand", w.trees.delivers[1].Commit)
			}
		})
	}
}

// TestChangedDefinitionAsks: what the next start would execute is delivered by an operator's decision only.
func TestChangedDefinitionAsks(t *testing.T) {
	for action, delivered := range map[string]bool{"approve": true, "skip": false} {
		w := newHarness(t, judged)
		w.trees.found.Definition = []string{"passbook/pipeline.yaml"}
		w.answers(message{"action": action})
		s := w.ends(run.Done, "")
		asked := w.asked(run.KindDeliveryRequested)
		require.Len(t, asked, 1)
		require.Equal(t, run.TriggerDefinition, asked[0].Trigger)
		require.Equal(t, delivered, s.Delivery.Delivered, action)
		require.False(t, s.Markers.RejectedOutcome)
	}
}

// TestSkippedOverrideIsNoRejection: an operator approved the work, and then did not deliver it.
func TestSkippedOverrideIsNoRejection(t *testing.T) {
	w := newHarness(t, judged)
	w.agent.words, w.trees.dirty = []string{"rejected"}, 1
	w.answers(message{"action": "approve"}, message{"action": "skip"})
	w.ends(run.Done, "")
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

var (
	errNoSlot     = temporal.NewApplicationError("wait for one of 2 slots", contract.ErrNoSlot)
	errCheckedOut = errors.New("the branch is checked out elsewhere")
)

// TestLostDirectoryIsRebuiltBeforeItsCheckout: the worker that finds no run directory asks for it first.
func TestLostDirectoryIsRebuiltBeforeItsCheckout(t *testing.T) {
	w := newHarness(t, judged)
	w.trees.errs = []error{temporal.NewNonRetryableApplicationError("the directory is gone", contract.ErrDirectoryLost,
		nil)}
	w.done()
	require.Equal(t, []string{"Rebuild", "Carry tree of run-1/" + call(1, 1)}, slices.DeleteFunc(w.trace,
		func(s string) bool { return s != "Rebuild" && !strings.HasPrefix(s, "Carry") }))
	require.Empty(t, w.story(run.KindRunPaused))
}

// fakeTrees are the run's own checkout and the target of its delivery.
type fakeTrees struct {
	refuses error // of each delivery
	current func(contract.Target) error

	mu       sync.Mutex
	errs     []error                // of syncs, in order
	changes  *run.WorkspaceUpdated  // that Carry reports
	found    contract.DeliverResult // what a dry run finds
	dirty    int                    // number of deliveries that find the target changed
	full     int                    // number of deliveries that find the disk full
	looks    []contract.DeliverInput
	delivers []contract.DeliverInput
	carries  []contract.SyncWorkspaceInput
	note     func(string)
	carrying func(contract.SyncWorkspaceInput)
}

func (f *fakeTrees) Carry(_ context.Context, in contract.SyncWorkspaceInput) (contract.SyncWorkspaceResult, error) {
	if f.carrying != nil {
		f.carrying(in)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return contract.SyncWorkspaceResult{}, err
	}
	f.note("Carry " + in.Tree.Tree.Digest)
	f.carries = append(f.carries, in)
	return contract.SyncWorkspaceResult{Commit: "commit of " + in.Tree.Tree.Digest, Changes: f.changes}, nil
}

func (f *fakeTrees) Deliver(_ context.Context, in contract.DeliverInput) (contract.DeliverResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full > 0 {
		f.full--
		return contract.DeliverResult{}, errFull
	}
	if err := cmp.Or(f.refuses, f.current(in.Target)); err != nil {
		return contract.DeliverResult{}, err
	}
	res := f.found
	if in.DryRun {
		f.looks = append(f.looks, in)
		return res, nil
	}
	f.note("Deliver")
	f.delivers = append(f.delivers, in)
	if f.dirty > 0 {
		f.dirty--
		res.Reason, res.Dirty = "the target has other changes in a.txt", []string{"a.txt"}
		return res, nil
	}
	res.Delivered, res.To, res.Location, res.Commit = true, "branch", "result", "delivered"
	return res, nil
}

func TestFailedCheckoutPausesAndRetries(t *testing.T) {
	w := newHarness(t, judged)
	w.trees.errs = slices.Repeat([]error{errCheckedOut}, 6)
	w.onPause(func() { w.signal("resume", nil) })
	s := w.ends(run.Done, "")
	require.Empty(t, s.InvalidTransition)
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1)
	require.Equal(t, run.PassFailed, paused[0].Reason)
	require.Contains(t, paused[0].Detail, "the branch is checked out elsewhere")
	require.Len(t, w.trees.carries, 1)
	require.Len(t, payloads[run.PassEnd](w, run.KindPassEnd), 2)
	require.Len(t, w.agent.ids, 2, "no call is repeated")
}

// A revert while the changes of a pass wait for the checkout abandons the pass: its call is made again.
func TestRevertAbandonsPassThatWaitsForCheckout(t *testing.T) {
	w := newHarness(t, judged)
	w.trees.errs = slices.Repeat([]error{errCheckedOut}, 6)
	w.onPause(func() { w.signal("revert", message{"to": "cp-1"}) })
	s := w.ends(run.Done, "")
	require.Empty(t, s.InvalidTransition)
	require.Equal(t, 1, s.Generation)
	require.Equal(t, []string{"g0.001.1.-.1", "g1.001.1.-.1", "g1.002.1.-.1"}, w.agent.ids)
	ends := payloads[run.PassEnd](w, run.KindPassEnd)
	require.Len(t, ends, 2)
	require.Equal(t, "run-1/g1.001.1.-.1", ends[0].Call)
	require.Len(t, w.trees.carries, 1, "the abandoned changes do not reach the checkout")
}

// TestCheckoutWaitsForTheStore: a host without a slot, or without the store, uses no attempt. The waits for the store
// become longer.
func TestCheckoutWaitsForTheStore(t *testing.T) {
	w := newHarness(t, judged)
	w.trees.errs = slices.Concat(slices.Repeat([]error{errNoSlot}, 10), slices.Repeat([]error{noStore("here")}, 18))
	w.ends(run.Done, "")
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, w.waits[len(w.waits)-3:])
	require.Empty(t, payloads[run.RunPaused](w, run.KindRunPaused))
	require.Len(t, w.trees.carries, 1)
}

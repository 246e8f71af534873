package workflows_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// fakeTrees are the run's own checkout and the target of its delivery.
type fakeTrees struct {
	mu       sync.Mutex
	broken   int                    // so many attempts of Carry fail
	busy     int                    // so many find no slot
	away     int                    // number of checkouts that find no store
	changes  *run.WorkspaceUpdated  // that Carry reports
	found    contract.DeliverResult // what a look finds
	dirty    int                    // so many deliveries find the target changed
	full     int                    // so many calls of Deliver find the disk full
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
	if f.busy > 0 {
		f.busy--
		return contract.SyncWorkspaceResult{}, temporal.NewApplicationError("wait for one of 2 slots",
			contract.ErrNoSlot)
	}
	if f.away > 0 {
		f.away--
		return contract.SyncWorkspaceResult{}, temporal.NewApplicationError("no store here", contract.ErrNoStore)
	}
	if f.broken > 0 {
		f.broken--
		return contract.SyncWorkspaceResult{}, errors.New("the branch is checked out elsewhere")
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
	res := f.found
	if in.DryRun {
		f.looks = append(f.looks, in)
		return res, nil
	}
	f.note("Deliver")
	f.delivers = append(f.delivers, in)
	if f.dirty > 0 {
		f.dirty--
		res.Reason, res.Dirty = "the target has changes of its own in a.txt", []string{"a.txt"}
		return res, nil
	}
	res.Delivered, res.To, res.Location, res.Commit = true, "branch", "result", "delivered"
	return res, nil
}

func TestCheckoutWithoutSlotUsesNoAttempt(t *testing.T) {
	w := newHarness(t, judged)
	w.trees.busy = 10
	w.ends(run.Done, "")
	require.Empty(t, payloads[run.RunPaused](w, run.KindRunPaused))
	require.Len(t, w.trees.carries, 1)
}

func TestFailedCheckoutPausesAndRetries(t *testing.T) {
	w := newHarness(t, judged)
	w.trees.broken = 6
	w.onPause(func() { w.signal("resume", nil) })
	s := w.ends(run.Done, "")
	require.Empty(t, s.InvalidTransition)
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1)
	require.Equal(t, run.PassFailed, paused[0].Reason)
	require.Contains(t, paused[0].Detail, "the branch is checked out elsewhere")
	require.Len(t, w.trees.carries, 1)
	require.Len(t, payloads[run.PassEnd](w, run.KindPassEnd), 2)
	require.Len(t, w.agent.ids, 2, "nobody is asked twice")
}

// A revert while the changes of a pass wait for the checkout abandons the pass: its call is made again.
func TestRevertAbandonsPassThatWaitsForCheckout(t *testing.T) {
	w := newHarness(t, judged)
	w.trees.broken = 6
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

// TestCheckoutWaitsForTheStore: a host that does not reach the store uses no attempt, and the waits become longer.
func TestCheckoutWaitsForTheStore(t *testing.T) {
	w := newHarness(t, judged)
	w.trees.away = 18
	w.ends(run.Done, "")
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, w.waits[len(w.waits)-3:])
	require.Empty(t, payloads[run.RunPaused](w, run.KindRunPaused))
	require.Len(t, w.trees.carries, 1)
}

// TestSyncedChangesHaveTheirCommit: what is synced to the checkout, on which tree, and its event.
func TestSyncedChangesHaveTheirCommit(t *testing.T) {
	w := newHarness(t, judged)
	w.ends(run.Done, "")
	require.Equal(t, []run.WorkspaceUpdated{{Step: "001", Call: "run-1/" + call(1, 1), Changed: 1,
		Tree:   run.Blob{Digest: "tree of run-1/" + call(1, 1)},
		Commit: "commit of tree of run-1/" + call(1, 1)}}, payloads[run.WorkspaceUpdated](w, run.KindWorkspaceUpdated))
	got := w.trees.carries[0]
	require.Equal(t, "tree of run-1/"+call(1, 1), got.Tree.Tree.Digest)
	require.Equal(t, "first tree", got.Previous.Digest)
	require.Equal(t, *w.in.Start.Workspace, got.Tree.Workspace)
	require.Equal(t, w.in.Plans[0], got.Tree.PlanUse)
}

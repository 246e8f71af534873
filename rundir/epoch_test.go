package rundir_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func second() rundir.Owner {
	return rundir.Owner{Epoch: 2, RunID: "run-1", Execution: "e2", Host: "h", OpenedAt: moment(99)}
}

// failed is a run of two passes that an epoch may continue.
func failed(t *testing.T) *story {
	s := newStory(t)
	s.twoPasses()
	s.add(run.KindRunEnd, run.RunEnd{Status: run.Failed})
	s.send()
	return s
}

// TestTakeOver: the start that knows the end of the directory acquires it. A later one, and one of an earlier epoch, is
// refused.
func TestTakeOver(t *testing.T) {
	ctx := context.Background()
	s := failed(t)
	d := written(t, s)
	end := tailOf(s.lines)
	before := look(t, d)
	var stale *rundir.StaleError
	elsewhere := tailOf(s.lines[:end.Seq-1])
	require.ErrorAs(t, rundir.TakeOver(ctx, d, second(), elsewhere), &stale)
	require.Equal(t, d.Root, stale.Dir)
	require.Regexp(t, "^it ends at event .*, not at event", stale.Why)
	require.ErrorAs(t, rundir.TakeOver(ctx, d, second(), run.Tail{Seq: end.Seq, Chain: "another"}), &stale)
	require.Equal(t, before, look(t, d), "a refused start writes nothing")

	require.NoError(t, rundir.TakeOver(ctx, d, second(), end))
	require.NoError(t, rundir.TakeOver(ctx, d, second(), elsewhere),
		"the owner may ask again, wherever it ends: it was reset")
	rival := second()
	rival.Execution = "e3"
	require.ErrorAs(t, rundir.TakeOver(ctx, d, rival, end), &stale)
	taken := rundir.StaleError{Dir: d.Root, Why: "epoch 2 is that of execution e2"}
	require.Equal(t, taken, *stale)
	earlier := second()
	earlier.Epoch = 1
	require.ErrorAs(t, rundir.TakeOver(ctx, d, earlier, end), &stale)
	require.Equal(t, taken, *stale)

	claimed := claim()
	claimed.Cluster, claimed.Embedded = "c1", true
	require.Equal(t, claimed, d.CurrentClaim(claimed), "an owner of an earlier version does not record where it is")
	moved := second()
	moved.Epoch, moved.Host, moved.Cluster = 3, "h2", "c2"
	require.NoError(t, rundir.TakeOver(ctx, d, moved, end))
	seat := claimed
	seat.Host, seat.Cluster, seat.Embedded = "h2", "c2", false
	require.Equal(t, seat, d.CurrentClaim(claimed))

	late := rundir.Batch{Epoch: 1, First: end.Seq + 1, Prev: end.Chain, Lines: []string{`{"seq":1}`}}
	got, err := d.Project(ctx, s.blobs, late)
	require.NoError(t, err)
	require.Equal(t, rundir.Projected{Outcome: run.ProjectionNewer, Tail: end}, got,
		"a worker of the epoch before can write nothing more")
}

// TestCompletedRunRefusesNewEpoch, also where only the files record that it is completed.
func TestCompletedRunRefusesNewEpoch(t *testing.T) {
	s := whole(t)
	d := written(t, s)
	before := look(t, d)
	var stale *rundir.StaleError
	require.ErrorAs(t, rundir.TakeOver(t.Context(), d, second(), tailOf(s.lines)), &stale)
	require.EqualError(t, stale, d.Root+" is not this start's: its run is done, and done is final: fork it or follow it "+
		"up. Run: starter status "+d.Root)
	require.Equal(t, before, look(t, d))
}

// TestOwnerOfNewEpochIsNotDamage: owner.json is written before the first event of its epoch. Afterwards it does not
// change.
func TestOwnerOfNewEpochIsNotDamage(t *testing.T) {
	s := failed(t)
	d := written(t, s)
	require.NoError(t, rundir.TakeOver(t.Context(), d, second(), tailOf(s.lines)))
	require.Empty(t, check(t, d).Issues)

	s.add(run.KindRunResumed, run.RunResumed{Epoch: 2, From: run.Failed})
	b := batch(s.lines, len(s.lines), len(s.lines))
	b.Epoch = 2
	project(t, d, s, b)
	require.Empty(t, check(t, d).Issues)
	const changed = "owner.json is of epoch "
	for _, row := range []struct{ text, message string }{
		{`{"epoch": 1}`, changed}, {`{"epoch": 2}`, changed}, {"{", "owner.json cannot be read"}, {"", changed},
	} {
		if write(t, d, rundir.OwnerFile, row.text); row.text == "" {
			remove(t, d, rundir.OwnerFile)
		}
		found := check(t, d).Issues
		require.Len(t, found, 1, row.text)
		require.Equal(t, rundir.ClaimDamaged, found[0].Code)
		require.Contains(t, found[0].Message, row.message)
	}
}

// TestTakeOverComparesTheJournal under the lock: a directory that is damaged or done is opened by no epoch.
func TestTakeOverComparesTheJournal(t *testing.T) {
	lastLost := withLines(func(l []string) []string { return l[:len(l)-2] })
	for name, row := range map[string]struct {
		end  run.Status
		do   change
		code rundir.Code // empty: it is done
		why  string
	}{
		"a changed line": {run.Failed, swapped(rundir.EventsFile, "03:04", "03:05"), rundir.JournalDamaged, ""},
		"a cut line":     {run.Failed, lastLost, rundir.JournalDamaged, ""},
		"done":           {run.Done, nothing, "", ""},
		"done, by result.json only": {run.Done, together(lastLost, without(rundir.MetaFile)), rundir.JournalDamaged,
			"result.json records"},
	} {
		t.Run(name, func(t *testing.T) {
			_, d := ended(t, row.end, 0)
			row.do(t, d)
			tail, err := d.Tail()
			require.NoError(t, err)
			before := look(t, d)
			err = rundir.TakeOver(t.Context(), d, second(), tail)
			if row.code == "" {
				var stale *rundir.StaleError
				require.ErrorAs(t, err, &stale)
				require.ErrorContains(t, stale, "its run is done")
			} else {
				var damaged *rundir.DamagedError
				require.ErrorAs(t, err, &damaged)
				require.Equal(t, row.code, damaged.Code)
				require.Contains(t, damaged.Why, row.why)
			}
			delete(before, rundir.LockFile)
			after := look(t, d)
			delete(after, rundir.LockFile)
			require.Equal(t, before, after)
		})
	}
}

package rundir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// lock holds the lock of a writer.
func lock(t *testing.T, d rundir.Dir, name, holder string) *disk.Lock {
	t.Helper()
	l, err := (disk.Disk{}).TryLock(d.Path(name), disk.Self(holder, noon))
	require.NoError(t, err)
	return l
}

// TestLiveRunIsNotRepaired: a run at work, and a directory that is being written to.
func TestLiveRunIsNotRepaired(t *testing.T) {
	d, blobs := directoryOf(t, "running")
	setKey(t, d, "status", `"done"`)
	before := look(t, d)
	o := rundir.RepairOptions{Apply: true, Blobs: blobs,
		EffectiveStatus: run.EffectiveStatus{Liveness: run.LiveOpen}}
	_, err := rundir.Repair(t.Context(), d, o)
	var live *rundir.LiveError
	require.ErrorAs(t, err, &live)
	require.EqualError(t, err, d.Root+" is live (its workflow is open, and it is running): nothing was repaired. Its "+
		"next event updates files that lag; for other findings, repair it while it is paused or waits, or after it has "+
		"ended")
	require.Equal(t, before, look(t, d))

	o.EffectiveStatus = run.EffectiveStatus{}
	held := lock(t, d, rundir.LockFile, "the worker")
	_, err = rundir.Repair(t.Context(), d, o)
	require.ErrorAs(t, err, &live)
	require.Regexp(t, `^the worker \(pid `, live.Why)
	require.NoError(t, held.Unlock())
	require.Equal(t, before, look(t, d))

	o.Apply, o.EffectiveStatus.Liveness = false, run.LiveOpen
	res, err := rundir.Repair(t.Context(), d, o)
	require.NoError(t, err, "a dry run is always allowed")
	require.Equal(t, rundir.MetaFile, planned(res))
	require.Contains(t, res.RepairHint, "its workflow is open")
}

// TestOpenRunThatWaitsIsRepaired: a paused run and one with an open question write nothing while they wait.
func TestOpenRunThatWaitsIsRepaired(t *testing.T) {
	for _, name := range []string{"paused", "asking"} {
		t.Run(name, func(t *testing.T) {
			d, blobs := directoryOf(t, name)
			healthy := check(t, d).Issues
			together(with(rundir.CostLog, "{\"foreign\n"), with(rundir.EventsFile, "{"), without(rundir.StateFile))(t, d)
			o := rundir.RepairOptions{Apply: true, Blobs: blobs, ReadTree: readTree,
				EffectiveStatus: run.EffectiveStatus{Liveness: run.LiveOpen}}
			held := lock(t, d, rundir.LockFile, "the worker")
			_, err := rundir.Repair(t.Context(), d, o)
			require.ErrorAs(t, err, new(*rundir.LiveError))
			require.NoError(t, held.Unlock())
			res, err := rundir.Repair(t.Context(), d, o)
			require.NoError(t, err)
			require.True(t, res.Applied)
			require.Equal(t, healthy, check(t, d).Issues)
		})
	}
}

// TestLockedDirectoryHasNoLag: what a writer may be about to write is no finding, and a dry repair changes nothing of
// it.
func TestLockedDirectoryHasNoLag(t *testing.T) {
	d, blobs := directoryOf(t, "paused")
	together(with(rundir.EventsFile, "x\n"), without("artifact.html", rundir.ErrorsLog, replyFile))(t, d)
	delete(blobs, digestOf("reply of 0021, redo 0"))
	held := lock(t, d, rundir.LockFile, "the worker")
	require.Empty(t, check(t, d).Issues)
	res, err := rundir.Repair(t.Context(), d, rundir.RepairOptions{Blobs: blobs})
	require.NoError(t, err)
	require.Empty(t, res.Changes)
	require.Empty(t, res.RepairHint)
	require.NoError(t, held.Unlock())
	require.Len(t, check(t, d).Issues, 5)

	d, _ = directoryOf(t, "projects, at work")
	write(t, d, rundir.CrossFile, "{")
	held = lock(t, d, rundir.LockFile, "the worker")
	require.Empty(t, check(t, d).Issues)
	require.NoError(t, held.Unlock())
}

// TestWithoutTheStoreNothingIsRepaired: what is derived from blobs cannot be made without them.
func TestWithoutTheStoreNothingIsRepaired(t *testing.T) {
	for _, do := range []change{without(rundir.StateFile), with(rundir.EventsFile, "{")} {
		d, _ := directoryOf(t, "paused")
		do(t, d)
		before := look(t, d)
		_, err := rundir.Repair(t.Context(), d, rundir.RepairOptions{Apply: true})
		require.ErrorContains(t, err, "store")
		require.Equal(t, before, look(t, d))
	}
}

// TestEditSurvivesRepair: the edit of an operator stays when everything around it is rebuilt.
func TestEditSurvivesRepair(t *testing.T) {
	d, blobs := directoryOf(t, "paused")
	together(withFile("artifact.html", "<html>mine</html>"), without(rundir.StateFile))(t, d)
	require.True(t, repair(t, d, blobs).Applied)
	now := look(t, d)
	require.Equal(t, "<html>mine</html>", now["artifact.html"])
	require.Contains(t, now, rundir.StateFile)
}

package fsck_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

// TestUnknownKeySurvivesRepair, however meta.json is rewritten.
func TestUnknownKeySurvivesRepair(t *testing.T) {
	for name, do := range map[string]change{
		"a key is set":           withKey("status", `"done"`),
		"every file is made":     without(layout.StateFile),
		"half a line is removed": with(layout.EventsFile, "{"),
	} {
		t.Run(name, func(t *testing.T) {
			d, blobs := directoryOf(t, "paused")
			setKey(t, d, "of_another_program", `{"a": [1.50, "é"]}`)
			do(t, d)
			require.True(t, repair(t, d, blobs).Applied)
			var meta map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(read(t, d, layout.MetaFile)), &meta))
			require.JSONEq(t, `{"a": [1.50, "é"]}`, string(meta["of_another_program"]))
			require.Equal(t, `"paused"`, string(meta["status"]))
			require.Empty(t, check(t, d).Issues)
		})
	}
}

// lock holds the lock of a writer.
func lock(t *testing.T, d projector.Dir, name, holder string) *disk.Lock {
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
	o := fsck.RepairOptions{Apply: true, Blobs: blobs, Now: noon,
		EffectiveStatus: run.EffectiveStatus{Liveness: run.LiveOpen}}
	_, err := fsck.Repair(t.Context(), d, o)
	var live *fsck.LiveError
	require.ErrorAs(t, err, &live)
	require.EqualError(t, err, d.Root+" is live (its workflow is open, and it is running): nothing was repaired. Its "+
		"next event updates files that lag; for other findings, repair it while it is paused or waits, or after it has "+
		"ended")
	require.Equal(t, before, look(t, d))

	o.EffectiveStatus = run.EffectiveStatus{}
	held := lock(t, d, layout.LockFile, "the worker")
	_, err = fsck.Repair(t.Context(), d, o)
	require.ErrorAs(t, err, &live)
	require.Regexp(t, `^the worker \(pid `, live.Why)
	require.NoError(t, held.Unlock())
	require.Equal(t, before, look(t, d))

	o.Apply, o.EffectiveStatus.Liveness = false, run.LiveOpen
	res, err := fsck.Repair(t.Context(), d, o)
	require.NoError(t, err, "a dry run is always allowed")
	require.Equal(t, "status", planned(res))
	require.Contains(t, res.RepairHint, "its workflow is open")
}

// TestOpenRunThatWaitsIsRepaired: a paused run and one with an open question write nothing while they wait.
func TestOpenRunThatWaitsIsRepaired(t *testing.T) {
	for _, name := range []string{"paused", "asking"} {
		t.Run(name, func(t *testing.T) {
			d, blobs := directoryOf(t, name)
			healthy := check(t, d).Issues
			together(with(layout.CostLog, "{\"foreign\n"), with(layout.EventsFile, "{"), without(layout.StateFile))(t, d)
			o := fsck.RepairOptions{Apply: true, Blobs: blobs, Now: noon, ReadTree: readTree,
				EffectiveStatus: run.EffectiveStatus{Liveness: run.LiveOpen}}
			held := lock(t, d, layout.LockFile, "the worker")
			_, err := fsck.Repair(t.Context(), d, o)
			require.ErrorAs(t, err, new(*fsck.LiveError))
			require.NoError(t, held.Unlock())
			res, err := fsck.Repair(t.Context(), d, o)
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
	together(with(layout.EventsFile, "x\n"), without("artifact.html", layout.ErrorsLog, replyFile))(t, d)
	delete(blobs, digestOf("reply of 0021, redo 0"))
	held := lock(t, d, layout.LockFile, "the worker")
	require.Empty(t, check(t, d).Issues)
	res, err := fsck.Repair(t.Context(), d, fsck.RepairOptions{Blobs: blobs, Now: noon})
	require.NoError(t, err)
	require.Empty(t, res.Changes)
	require.Empty(t, res.RepairHint)
	require.NoError(t, held.Unlock())
	require.Len(t, check(t, d).Issues, 5)

	d, _ = directoryOf(t, "projects, at work")
	write(t, d, layout.CrossFile, "{")
	held = lock(t, d, layout.LockFile, "the worker")
	require.Empty(t, check(t, d).Issues)
	require.NoError(t, held.Unlock())
}

// TestWithoutTheStoreNothingIsRepaired: what is derived from blobs cannot be made without them.
func TestWithoutTheStoreNothingIsRepaired(t *testing.T) {
	for _, do := range []change{without(layout.StateFile), with(layout.EventsFile, "{")} {
		d, _ := directoryOf(t, "paused")
		do(t, d)
		before := look(t, d)
		_, err := fsck.Repair(t.Context(), d, fsck.RepairOptions{Apply: true, Now: noon})
		require.ErrorContains(t, err, "store")
		require.Equal(t, before, look(t, d))
	}
}

// TestEditSurvivesRepair: the edit of an operator stays when everything around it is rebuilt.
func TestEditSurvivesRepair(t *testing.T) {
	d, blobs := directoryOf(t, "paused")
	together(withFile("artifact.html", "<html>mine</html>"), without(layout.StateFile))(t, d)
	require.True(t, repair(t, d, blobs).Applied)
	now := look(t, d)
	require.Equal(t, "<html>mine</html>", now["artifact.html"])
	require.Equal(t, "<html>mine</html>", now["run_state_repairs/20260103T120000.000Z/artifact.html"])
	require.Contains(t, now, layout.StateFile)
}

// TestFailedRepairLeavesNothing: where making the files again does not end a finding, the repair reports it and leaves
// the directory as it was.
func TestFailedRepairLeavesNothing(t *testing.T) {
	d, good := directoryOf(t, "with turns")
	bad := otherTrees{good}
	raw, err := bad.Manifest(t.Context(), "")
	require.NoError(t, err)
	for n := range 3 {
		write(t, d, layout.SnapshotManifest(n), string(raw))
	}
	for range 2 {
		before := look(t, d)
		res, err := fsck.Repair(t.Context(), d, fsck.RepairOptions{Apply: true, Blobs: bad, Now: noon})
		require.NoError(t, err)
		require.False(t, res.Applied)
		require.Empty(t, res.Changes)
		require.Empty(t, res.BackupPath)
		require.Contains(t, res.RepairHint, "starter rebuild run-1 --output-dir OTHER")
		require.Equal(t, before, look(t, d))
		write(t, d, layout.RepairsDir+"/an earlier one/audit.json", "{}") // of the second time
	}
}

// otherTrees is a store that returns the list of another tree.
type otherTrees struct{ fakeBlobs }

func (otherTrees) Manifest(context.Context, string) ([]byte, error) {
	return []byte("{\"version\":1,\n\"tree\":\"another\",\n\"entries\":[\n]}\n"), nil
}

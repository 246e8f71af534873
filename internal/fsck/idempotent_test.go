package fsck_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/run"
)

// histories are runs that went back, or begin again: what is derived from their events is more than the last one of
// each kind.
func histories() map[string]func(s *story) {
	nothing := run.State{} // as a workflow that was reset to its first task holds it
	return map[string]func(s *story){
		"reset to before the start": func(s *story) {
			s.start()
			s.pass(1)
			s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S1", AtPass: 1})
			s.pass(2)
			s.revert(nothing)
			s.start()
			s.pass(1)
			s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S1", AtPass: 1})
			s.begin(about(2), 1)
		},
		"reset to before the start, on a workspace": func(s *story) {
			s.worksOn("")
			s.turn(1, "ok", "tree 1")
			s.turn(2, "ok", "tree 2")
			s.revert(nothing)
			s.worksOn("")
			s.turn(1, "ok", "tree 1")
			s.turn(2, "ok", "another tree 2")
			s.turn(3, "ok", "")
		},
		"reset twice to before the start, on a workspace, in full": func(s *story) {
			for range 2 {
				s.worksOn(run.SnapshotsFull)
				s.turn(1, "ok", "tree 1")
				s.revert(nothing)
			}
			s.worksOn(run.SnapshotsFull)
			s.turn(1, "ok", "tree 1")
		},
		"reset to the middle": func(s *story) {
			s.start()
			s.pass(1)
			then := s.state
			s.begin(about(2), 1)
			s.fail(about(2), 1)
			s.begin(about(2), 2)
			s.revert(then)
			s.begin(about(2), 1)
			s.fail(about(2), 1)
			s.begin(about(2), 2)
			s.end(about(2), "ok", 2)
		},
		"taken back and forth": func(s *story) {
			s.start()
			first := s.state
			s.pass(1)
			s.pass(2)
			s.cycle(1, 2.5)
			later := s.state
			s.revert(first)
			s.pass(1)
			s.revert(later)
			s.cycle(2, 3.5)
			s.phase = ""
			s.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
		},
	}
}

// TestRepairTerminates kills a projection at its steps, in runs that went back, and repairs what is left: then a check
// finds nothing, and the next repair writes nothing.
func TestRepairTerminates(t *testing.T) {
	for name, send := range histories() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			send(s)
			s.send()
			master := projector.At(filepath.Join(t.TempDir(), "run"))
			require.NoError(t, master.Take(claim()))
			for i, b := range s.batches {
				for k := i % killEvery; ; k += killEvery {
					d := projector.At(filepath.Join(t.TempDir(), "run"))
					require.NoError(t, os.CopyFS(d.Root, os.DirFS(master.Root)))
					if !killedAt(t, d, s, b, k) {
						break
					}
					repairedOnce(t, d, s, fmt.Sprintf("batch %d, step %d", i, k))
				}
				project(t, master, s, b)
				repairedOnce(t, master, s, fmt.Sprintf("after batch %d", i))
			}
			again := projector.At(filepath.Join(t.TempDir(), "run"))
			_, err := again.Rebuild(t.Context(), s.blobs, projector.Source{Claim: claim(), Batches: s.batches})
			require.NoError(t, err)
			repairedOnce(t, again, s, "rebuilt")
		})
	}
}

// killEvery is how many steps of a projection are left out between two kills.
const killEvery = 29

// killedAt stops a projection before its kth step; false: it has fewer.
func killedAt(t *testing.T, d projector.Dir, s *story, b projector.Batch, k int) bool {
	t.Helper()
	n := -1
	d.Disk = durable.Disk{Hook: func(durable.Step) error {
		if n++; n >= k {
			return errStop
		}
		return nil
	}}
	_, err := d.Project(t.Context(), s.blobs, b)
	if err != nil {
		require.ErrorIs(t, err, errStop)
	}
	return err != nil
}

// repairedOnce repairs a directory; then nothing is found, and nothing is written by the next repair.
func repairedOnce(t *testing.T, d projector.Dir, s *story, when string) {
	t.Helper()
	o := fsck.RepairOptions{Apply: true, Blobs: s.blobs, Now: noon}
	_, err := fsck.Repair(t.Context(), d, o)
	require.NoError(t, err, when)
	require.Empty(t, check(t, d).Issues, when)
	before := look(t, d)
	res, err := fsck.Repair(t.Context(), d, o)
	require.NoError(t, err, when)
	require.False(t, res.Applied, when)
	require.Equal(t, before, look(t, d), when)
}

// TestFailedRepairLeavesNothing: where making the files again does not end a finding, the repair says so and is no
// repair.
func TestFailedRepairLeavesNothing(t *testing.T) {
	d, good := bodyOf(t, "with turns")
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
		place(t, d, layout.RepairsDir+"/an earlier one/audit.json", "{}") // of the second time
	}
}

// otherTrees is a store that gives the list of another tree.
type otherTrees struct{ fakeBlobs }

func (otherTrees) Manifest(context.Context, string) ([]byte, error) {
	return []byte("{\"version\":1,\n\"tree\":\"another\",\n\"entries\":[\n]}\n"), nil
}

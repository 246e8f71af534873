package rundir_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestStoppedProjections stops the projection of one batch before each of its steps, checks what readers find, and
// projects again: in the end the directory is that of an undisturbed run, byte for byte. state.json never goes back.
func TestStoppedProjections(t *testing.T) {
	for name, row := range map[string]struct {
		send  func(s *story)
		batch int // from the end
		check func(t *testing.T, d rundir.Dir)
	}{
		"a pass, its checkpoint, and two failed outputs": {send: func(s *story) {
			s.start()
			s.begin(about(1), 1)
			s.fail(about(1), 1)
			s.begin(about(1), 2)
			s.end(about(1), "ok", 2)
			s.checkpoint("cp-1", 1)
			s.fail(about(2), 1)
			s.fail(about(2), 2)
			s.begin(about(2), 3)
		}},
		"turns with their trees": {send: func(s *story) {
			s.worksOn(run.SnapshotsFull)
			s.turn(1, "ok", "tree 1")
			s.turn(2, "ok", "tree 2")
		}, check: func(t *testing.T, d rundir.Dir) {
			files := look(t, d)
			if _, there := files[rundir.SnapshotManifest(2)]; there {
				require.Contains(t, files, "snapshots/turn-2/tree/file.txt", "a manifest is written after its tree")
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			row.send(s)
			s.send()
			want := look(t, written(t, s))
			before, at := claimed(t), len(s.batches)-1-row.batch
			project(t, before, s, s.batches[:at]...)
			for k, over := 0, false; !over; k++ {
				d := copyOf(t, before)
				d.Disk = stopAt(k)
				_, err := d.Project(context.Background(), s.blobs, s.batches[at])
				if over = err == nil; over {
					require.Greater(t, k, 20, "the batch has many steps")
				} else {
					require.ErrorIs(t, err, errStop)
				}
				_, err = d.Meta()
				require.NoError(t, err, "step %d", k)
				lastSeq := func() int64 {
					state, err := rundir.Records(d)
					require.NoError(t, err, "step %d", k)
					return state.LastSeq
				}
				if row.check != nil {
					row.check(t, d)
				}
				was := lastSeq()
				d.Disk = disk.Disk{Hook: func(step disk.Step) error {
					if step.Op == disk.OpSyncFolder {
						require.GreaterOrEqual(t, lastSeq(), was, "stopped before step %d", k)
					}
					return nil
				}}
				project(t, d, s, s.batches[at:]...)
				same(t, want, look(t, d), fmt.Sprintf("stopped before step %d", k))
			}
		})
	}
}

// histories are runs that went back, or begin again: what is derived from their events is more than the last one of
// each kind.
func histories() map[string]func(s *story) {
	beginning := run.State{} // as a workflow that was reset to its first task has it
	return map[string]func(s *story){
		"without a revert": func(s *story) {
			s.start()
			s.pass(1)
			s.begin(about(2), 1)
			s.fail(about(2), 1)
			s.end(about(2), "output-truncated", 1)
			s.cycle(1, 3.5)
			s.finish(run.Done)
		},
		"reset to before the start": func(s *story) {
			for range 2 {
				s.start()
				s.pass(1)
				s.checkpoint("cp-S1", 1)
				s.begin(about(2), 1)
				s.revert(beginning)
			}
			s.start()
		},
		"reset to before the start, on a workspace": func(s *story) {
			s.worksOn("")
			s.turn(1, "ok", "tree 1")
			s.turn(2, "ok", "tree 2")
			s.revert(beginning)
			s.worksOn("")
			s.turn(1, "ok", "tree 1")
			s.turn(2, "ok", "another tree 2")
			s.turn(3, "ok", "")
		},
		"reset twice to before the start, on a workspace, in full": func(s *story) {
			for range 2 {
				s.worksOn(run.SnapshotsFull)
				s.turn(1, "ok", "tree 1")
				s.revert(beginning)
			}
			s.worksOn(run.SnapshotsFull)
			s.turn(1, "ok", "tree 1")
		},
		"reset to the middle": func(s *story) {
			s.start()
			s.pass(1)
			then := s.state
			for range 2 {
				s.begin(about(2), 1)
				s.fail(about(2), 1)
				s.begin(about(2), 2)
				s.revert(then)
			}
			s.begin(about(2), 1)
			s.end(about(2), "ok", 1)
		},
		"reverted back and forth": func(s *story) {
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
			s.finish(run.Done)
		},
	}
}

// TestRepairOfStoppedProjections stops projections at a sample of their steps, and repairs the directory: then check
// finds nothing, the next repair writes nothing, and the same projection writes the directory of an undisturbed run.
func TestRepairOfStoppedProjections(t *testing.T) {
	const every = 29 // steps between two stops
	for name, send := range histories() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			send(s)
			s.send()
			before, found := claimed(t), 0
			for i, b := range s.batches {
				after := copyOf(t, before)
				project(t, after, s, b)
				want := look(t, after)
				repairOnce(t, after, s, fmt.Sprintf("after batch %d", i))
				for k, over := i%every, false; !over; k += every {
					d, when := copyOf(t, before), fmt.Sprintf("batch %d, stopped before step %d", i, k)
					d.Disk = stopAt(k)
					_, err := d.Project(context.Background(), s.blobs, b)
					over = err == nil
					d.Disk = disk.Disk{}
					if name == "without a revert" && i > 0 {
						for _, c := range codesOf(check(t, d)) {
							require.Equal(t, rundir.FileDiffers, c, when)
							found++
						}
					}
					repairOnce(t, d, s, when)
					project(t, d, s, b)
					got := look(t, d)
					maps.DeleteFunc(got, func(name, _ string) bool {
						return strings.HasPrefix(name, rundir.TornDir)
					})
					same(t, want, got, when)
				}
				before = after
			}
			require.Equal(t, name == "without a revert", found > 0)
			repairOnce(t, rebuilt(t, s), s, "rebuilt")
		})
	}
}

// repairOnce repairs a directory; then check finds nothing, and the next repair writes nothing.
func repairOnce(t *testing.T, d rundir.Dir, s *story, when string) {
	t.Helper()
	repair(t, d, s.blobs)
	require.Empty(t, check(t, d).Issues, when)
	before := look(t, d)
	require.False(t, repair(t, d, s.blobs).Applied, when)
	require.Equal(t, before, look(t, d), when)
}

// TestStoppedRepair stops a repair before its steps. A reader always finds the old meta.json or the new one, the first
// copy is of the damaged one, and the next repair completes it.
func TestStoppedRepair(t *testing.T) {
	for _, row := range []struct {
		name  string
		do    change
		every int // the second has many steps, and most are those of the export
	}{
		{"a key", withKey("status", `"done"`), 1},
		{"all files", together(withKey("status", `"done"`), without(rundir.StateFile)), 9},
	} {
		t.Run(row.name, func(t *testing.T) {
			master, blobs := directoryOf(t, "paused")
			row.do(t, master)
			old := read(t, master, rundir.MetaFile)
			for k, over := 0, false; !over; k += row.every {
				d := copyOf(t, master)
				d.Disk = stopAt(k)
				_, err := rundir.Repair(t.Context(), d, rundir.RepairOptions{Apply: true, Blobs: blobs})
				over = err == nil
				if now := look(t, d); now[rundir.MetaFile] != old {
					require.Contains(t, slices.Collect(maps.Values(now)), old, "step %d", k)
				}
				d.Disk = disk.Disk{}
				_, err = d.Meta()
				require.NoError(t, err)
				repair(t, d, blobs)
				require.Empty(t, check(t, d).Issues, "step %d", k)
				require.True(t, !over || k > 10, "a repair has many steps")
			}
		})
	}
}

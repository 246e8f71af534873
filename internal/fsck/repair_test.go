package fsck_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/run"
)

// TestRepairChangesNothingElse compares another program's meta.json byte by byte: unknown keys, their order and their
// form stay.
func TestRepairChangesNothingElse(t *testing.T) {
	d, _ := bodyOf(t, "reference, asked twice")
	before := look(t, d)[layout.MetaFile]
	hurt := strings.Replace(before, "\"status\": \"done\",\n",
		"\"status\": \"done\",\n  \"phase_handoff\": {\n    \"id\": \"validate_plan:plan_round:2\"\n  },\n", 1)
	require.NotEqual(t, before, hurt)
	write(t, d, layout.MetaFile, hurt)
	res, err := fsck.Repair(context.Background(), d, fsck.RepairOptions{Apply: true, Now: noon})
	require.NoError(t, err)
	require.Equal(t, []fsck.Change{{
		Field: "phase_handoff", Before: json.RawMessage(`{"id":"validate_plan:plan_round:2"}`),
		Code: fsck.TerminalWithStaleHandoff,
	}}, res.Changes)
	require.Equal(t, before, look(t, d)[layout.MetaFile])
	require.NotContains(t, look(t, d), layout.LockFile, "it is no file of another program")
}

// TestUnknownKeySurvivesRepair whichever way meta.json is written again.
func TestUnknownKeySurvivesRepair(t *testing.T) {
	for name, hurt := range map[string]func(projector.Dir){
		"a key is set":        func(d projector.Dir) { setKey(t, d, "status", `"done"`) },
		"everything is anew":  func(d projector.Dir) { remove(t, d, layout.StateFile) },
		"a torn end is moved": func(d projector.Dir) { appendTo(t, d, layout.EventsFile, "{") },
	} {
		t.Run(name, func(t *testing.T) {
			d, blobs := bodyOf(t, "paused")
			setKey(t, d, "of_another_program", `{"a": [1.50, "é"]}`)
			hurt(d)
			res, err := fsck.Repair(context.Background(), d, fsck.RepairOptions{Apply: true, Blobs: blobs, Now: noon})
			require.NoError(t, err)
			require.True(t, res.Applied)
			var meta map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(look(t, d)[layout.MetaFile]), &meta))
			require.JSONEq(t, `{"a": [1.50, "é"]}`, string(meta["of_another_program"]))
			require.Equal(t, `"paused"`, string(meta["status"]))
			require.Empty(t, check(t, d).Issues)
		})
	}
}

// TestDecidedHaltIsExecuted sets what the last decision says, and nothing else.
func TestDecidedHaltIsExecuted(t *testing.T) {
	d, _ := bodyOf(t, "reference, asking")
	require.NoError(t, os.Mkdir(d.Path("phase_handoff_decisions"), 0o755))
	write(t, d, "phase_handoff_decisions/b.json",
		`{"handoff_id":"h-1","action":"halt","decided_at":"2026-01-02T04:00:00+00:00"}`)
	write(t, d, "phase_handoff_decisions/a.json",
		`{"handoff_id":"h-1","action":"Halt","decided_at":"2026-01-02T05:30:00+02:00"}`)
	_, err := fsck.Repair(context.Background(), d, fsck.RepairOptions{Apply: true, Now: noon})
	require.NoError(t, err)
	require.Equal(t, `{
  "task": "t",
  "status": "halted",
  "halt_reason": "phase_handoff_halt",
  "halted_at": "2026-01-02T04:00:00+00:00"
}`, look(t, d)[layout.MetaFile])

	d, _ = bodyOf(t, "reference, asking")
	require.NoError(t, os.Mkdir(d.Path("phase_handoff_decisions"), 0o755))
	write(t, d, "phase_handoff_decisions/b.json", `{"handoff_id":"h-1","action":"halt"}`)
	_, err = fsck.Repair(context.Background(), d, fsck.RepairOptions{Apply: true, Now: noon})
	require.NoError(t, err)
	require.Contains(t, look(t, d)[layout.MetaFile], `"halted_at": "2026-01-03T12:00:00.000Z"`)
}

// TestLiveRunIsNotRepaired: an open workflow, and a directory that is being written to.
func TestLiveRunIsNotRepaired(t *testing.T) {
	d, blobs := bodyOf(t, "paused")
	setKey(t, d, "status", `"done"`)
	before := look(t, d)
	o := fsck.RepairOptions{Apply: true, Blobs: blobs, Now: noon,
		EffectiveStatus: run.EffectiveStatus{Liveness: run.LiveOpen}}
	_, err := fsck.Repair(context.Background(), d, o)
	var live *fsck.LiveError
	require.ErrorAs(t, err, &live)
	require.EqualError(t, err, d.Root+" is live (its workflow is open): nothing was repaired. Its next event updates "+
		"files that lag; for other findings, repair it after it has ended")
	require.Equal(t, before, look(t, d))

	o.EffectiveStatus = run.EffectiveStatus{}
	lock, err := durable.TryLock(d.Path(layout.LockFile), durable.Self("the worker", noon))
	require.NoError(t, err)
	_, err = fsck.Repair(context.Background(), d, o)
	require.ErrorAs(t, err, &live)
	require.ErrorContains(t, err, d.Root+" is live (the worker ")
	require.NoError(t, lock.Unlock())
	require.Equal(t, before, look(t, d))

	o.Apply, o.EffectiveStatus.Liveness = false, run.LiveOpen
	res, err := fsck.Repair(context.Background(), d, o)
	require.NoError(t, err, "looking is always allowed")
	require.Equal(t, "status", planned(res))
	require.Contains(t, res.RepairHint, "its workflow is open")
}

// TestLockedDirectoryHasNoLag: what a writer may be about to write is no finding, and a dry repair changes nothing of
// it. Another repair holds the lock of another program's directory.
func TestLockedDirectoryHasNoLag(t *testing.T) {
	d, blobs := bodyOf(t, "paused")
	appendTo(t, d, layout.EventsFile, "x\n")
	remove(t, d, "artifact.html")
	remove(t, d, layout.ErrorsLog)
	const reply = "_orchestrator/passes/pass-002/raw-output.txt"
	delete(blobs, digestOf(look(t, d)[reply]))
	remove(t, d, reply)
	lock, err := durable.TryLock(d.Path(layout.LockFile), durable.Self("the worker", noon))
	require.NoError(t, err)
	require.Empty(t, check(t, d).Issues)
	res, err := fsck.Repair(t.Context(), d, fsck.RepairOptions{Blobs: blobs, Now: noon})
	require.NoError(t, err)
	require.Empty(t, res.Changes)
	require.Empty(t, res.RepairHint)
	require.NoError(t, lock.Unlock())
	require.Len(t, check(t, d).Issues, 5)

	d, _ = bodyOf(t, "own projects")
	write(t, d, layout.CrossFile, "{")
	lock, err = durable.TryLock(d.Path(layout.LockFile), durable.Self("the worker", noon))
	require.NoError(t, err)
	require.Empty(t, check(t, d).Issues)
	require.NoError(t, lock.Unlock())

	d, _ = bodyOf(t, "reference, done")
	setKey(t, d, "status", `"running"`)
	require.NoError(t, os.Mkdir(d.Path(layout.RepairsDir), 0o755))
	lock, err = durable.TryLock(d.Path(layout.RepairsDir+"/repair.lock"), durable.Self("another repair", noon))
	require.NoError(t, err)
	_, err = fsck.Repair(t.Context(), d, fsck.RepairOptions{Apply: true, Now: noon})
	require.ErrorContains(t, err, "another repair ")
	require.NoError(t, lock.Unlock())
}

// TestInterruptedRepair stops a repair before its steps. A reader always finds the old meta.json or the new one, the
// first copy that was kept is of the hurt one, and the next repair ends it.
func TestInterruptedRepair(t *testing.T) {
	for _, row := range []struct {
		name  string
		hurt  func(projector.Dir)
		every int // the second has many steps, and most are the projector's
	}{
		{"keys", func(d projector.Dir) { setKey(t, d, "status", `"done"`) }, 1},
		{"all anew", func(d projector.Dir) { setKey(t, d, "status", `"done"`); remove(t, d, layout.StateFile) }, 9},
	} {
		t.Run(row.name, func(t *testing.T) {
			master, blobs := bodyOf(t, "paused")
			row.hurt(master)
			old := look(t, master)[layout.MetaFile]
			for k, over := 0, false; !over; k += row.every {
				d := projector.At(t.TempDir() + "/run")
				require.NoError(t, os.CopyFS(d.Root, os.DirFS(master.Root)))
				n := -1
				d.Disk = durable.Disk{Hook: func(durable.Step) error {
					if n++; n >= k {
						return errStop
					}
					return nil
				}}
				o := fsck.RepairOptions{Apply: true, Blobs: blobs, Now: noon}
				_, err := fsck.Repair(context.Background(), d, o)
				over = err == nil
				if now := look(t, d); now[layout.MetaFile] != old {
					require.Equal(t, old, now["run_state_repairs/20260103T120000.000Z/meta.json"], "step %d", k)
				}
				d.Disk = durable.Disk{}
				_, err = d.Meta()
				require.NoError(t, err)
				_, err = fsck.Repair(context.Background(), d, o)
				require.NoError(t, err, "step %d", k)
				require.Empty(t, check(t, d).Issues, "step %d", k)
				if over {
					require.Greater(t, k, 10, "a repair has many steps")
				}
			}
		})
	}
}

// TestWithoutTheStoreNothingIsTouched: what is derived from blobs cannot be made without them.
func TestWithoutTheStoreNothingIsTouched(t *testing.T) {
	for _, hurt := range []func(projector.Dir){
		func(d projector.Dir) { remove(t, d, layout.StateFile) },
		func(d projector.Dir) { appendTo(t, d, layout.EventsFile, "{") },
	} {
		d, _ := bodyOf(t, "paused")
		hurt(d)
		before := look(t, d)
		_, err := fsck.Repair(context.Background(), d, fsck.RepairOptions{Apply: true, Now: noon})
		require.ErrorContains(t, err, "store")
		require.Equal(t, before, look(t, d))
	}
}

// TestEditSurvivesRepair: an operator's edit of the artifact stays when everything around it is rebuilt.
func TestEditSurvivesRepair(t *testing.T) {
	d, blobs := bodyOf(t, "paused")
	write(t, d, "artifact.html", "<html>mine</html>")
	remove(t, d, layout.StateFile)
	res, err := fsck.Repair(context.Background(), d, fsck.RepairOptions{Apply: true, Blobs: blobs, Now: noon})
	require.NoError(t, err)
	require.True(t, res.Applied)
	now := look(t, d)
	require.Equal(t, "<html>mine</html>", now["artifact.html"])
	require.Equal(t, "<html>mine</html>", now["run_state_repairs/20260103T120000.000Z/artifact.html"])
	require.Contains(t, now, layout.StateFile)
}

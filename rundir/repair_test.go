package rundir_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestARepairChangesNothingElse compares another program's meta.json byte by byte: unknown keys, their order and their form stay.
func TestARepairChangesNothingElse(t *testing.T) {
	d, _ := bodyOf(t, "reference, asked twice")
	before := look(t, d)[rundir.MetaFile]
	hurt := strings.Replace(before, "\"status\": \"done\",\n", "\"status\": \"done\",\n  \"phase_handoff\": {\n    \"id\": \"validate_plan:plan_round:2\"\n  },\n", 1)
	require.NotEqual(t, before, hurt)
	write(t, d, rundir.MetaFile, hurt)
	res, err := d.Repair(context.Background(), rundir.RepairOptions{Apply: true, Now: noon})
	require.NoError(t, err)
	require.Equal(t, []rundir.Change{{
		Field: "phase_handoff", Before: json.RawMessage(`{"id":"validate_plan:plan_round:2"}`), Code: rundir.TerminalWithStaleHandoff,
	}}, res.Changes)
	require.Equal(t, before, look(t, d)[rundir.MetaFile])
}

// TestAnUnknownKeyOutlivesARepair whichever way meta.json is written again.
func TestAnUnknownKeyOutlivesARepair(t *testing.T) {
	for name, hurt := range map[string]func(rundir.Dir){
		"a key is set":        func(d rundir.Dir) { setKey(t, d, "status", `"done"`) },
		"everything is anew":  func(d rundir.Dir) { remove(t, d, rundir.StateFile) },
		"a torn end is moved": func(d rundir.Dir) { appendTo(t, d, rundir.EventsFile, "{") },
	} {
		t.Run(name, func(t *testing.T) {
			d, blobs := bodyOf(t, "paused")
			setKey(t, d, "of_another_program", `{"a": [1.50, "é"]}`)
			hurt(d)
			res, err := d.Repair(context.Background(), rundir.RepairOptions{Apply: true, Blobs: blobs, Now: noon})
			require.NoError(t, err)
			require.True(t, res.Applied)
			var meta map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(look(t, d)[rundir.MetaFile]), &meta))
			require.JSONEq(t, `{"a": [1.50, "é"]}`, string(meta["of_another_program"]))
			require.Equal(t, `"paused"`, string(meta["status"]))
			require.Empty(t, check(t, d).Issues)
		})
	}
}

// TestAHaltThatWasDecidedIsCarriedOut sets what the last decision says, and nothing else.
func TestAHaltThatWasDecidedIsCarriedOut(t *testing.T) {
	d, _ := bodyOf(t, "reference, asking")
	require.NoError(t, os.Mkdir(d.Path("phase_handoff_decisions"), 0o755))
	write(t, d, "phase_handoff_decisions/b.json", `{"handoff_id":"h-1","action":"halt","decided_at":"2026-01-02T04:00:00+00:00"}`)
	write(t, d, "phase_handoff_decisions/a.json", `{"handoff_id":"h-1","action":"Halt","decided_at":"2026-01-02T05:30:00+02:00"}`)
	_, err := d.Repair(context.Background(), rundir.RepairOptions{Apply: true, Now: noon})
	require.NoError(t, err)
	require.Equal(t, `{
  "task": "t",
  "status": "halted",
  "halt_reason": "phase_handoff_halt",
  "halted_at": "2026-01-02T04:00:00+00:00"
}`, look(t, d)[rundir.MetaFile])

	d, _ = bodyOf(t, "reference, asking")
	require.NoError(t, os.Mkdir(d.Path("phase_handoff_decisions"), 0o755))
	write(t, d, "phase_handoff_decisions/b.json", `{"handoff_id":"h-1","action":"halt"}`)
	_, err = d.Repair(context.Background(), rundir.RepairOptions{Apply: true, Now: noon})
	require.NoError(t, err)
	require.Contains(t, look(t, d)[rundir.MetaFile], `"halted_at": "2026-01-03T12:00:00.000Z"`)
}

// TestALiveRunIsNotRepaired: an open workflow, and a directory that is being written to.
func TestALiveRunIsNotRepaired(t *testing.T) {
	d, blobs := bodyOf(t, "paused")
	setKey(t, d, "status", `"done"`)
	before := look(t, d)
	o := rundir.RepairOptions{Apply: true, Blobs: blobs, Now: noon, Standing: run.Standing{Liveness: run.LiveOpen}}
	_, err := d.Repair(context.Background(), o)
	var live *rundir.LiveError
	require.ErrorAs(t, err, &live)
	require.Equal(t, before, look(t, d))

	o.Standing = run.Standing{}
	lock, err := durable.TryLock(d.Path(rundir.LockFile), durable.Self("the worker", noon))
	require.NoError(t, err)
	_, err = d.Repair(context.Background(), o)
	require.ErrorAs(t, err, &live)
	require.ErrorContains(t, err, "the worker")
	require.NoError(t, lock.Unlock())
	require.Equal(t, before, look(t, d))

	o.Apply, o.Standing.Liveness = false, run.LiveOpen
	res, err := d.Repair(context.Background(), o)
	require.NoError(t, err, "looking is always allowed")
	require.Equal(t, "status", planned(res))
	require.Contains(t, res.RepairHint, "its workflow is open")
}

// TestARepairThatIsCutOff stops a repair before its steps. A reader always finds the old meta.json or the new one, the first copy that was kept
// is of the hurt one, and the next repair ends it.
func TestARepairThatIsCutOff(t *testing.T) {
	for _, row := range []struct {
		name  string
		hurt  func(rundir.Dir)
		every int // the second has many steps, and most are the projector's
	}{
		{"keys", func(d rundir.Dir) { setKey(t, d, "status", `"done"`) }, 1},
		{"all anew", func(d rundir.Dir) { setKey(t, d, "status", `"done"`); remove(t, d, rundir.StateFile) }, 9},
	} {
		t.Run(row.name, func(t *testing.T) {
			master, blobs := bodyOf(t, "paused")
			row.hurt(master)
			old := look(t, master)[rundir.MetaFile]
			for k, over := 0, false; !over; k += row.every {
				d := rundir.At(t.TempDir() + "/run")
				require.NoError(t, os.CopyFS(d.Root, os.DirFS(master.Root)))
				n := -1
				d.Disk = durable.Disk{Hook: func(durable.Step) error {
					if n++; n >= k {
						return errStop
					}
					return nil
				}}
				o := rundir.RepairOptions{Apply: true, Blobs: blobs, Now: noon}
				_, err := d.Repair(context.Background(), o)
				over = err == nil
				if now := look(t, d); now[rundir.MetaFile] != old {
					require.Equal(t, old, now["run_state_repairs/20260103T120000.000Z/meta.json"], "step %d", k)
				}
				d.Disk = durable.Disk{}
				_, err = d.Meta()
				require.NoError(t, err)
				_, err = d.Repair(context.Background(), o)
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
	d, _ := bodyOf(t, "paused")
	remove(t, d, rundir.StateFile)
	before := look(t, d)
	_, err := d.Repair(context.Background(), rundir.RepairOptions{Apply: true, Now: noon})
	require.ErrorContains(t, err, "store")
	require.Equal(t, before, look(t, d))
}

// TestAnEditSurvivesARepair: what somebody wrote into the artifact stays, though everything around it is made again.
func TestAnEditSurvivesARepair(t *testing.T) {
	d, blobs := bodyOf(t, "paused")
	write(t, d, "artifact.html", "<html>mine</html>")
	remove(t, d, rundir.StateFile)
	res, err := d.Repair(context.Background(), rundir.RepairOptions{Apply: true, Blobs: blobs, Now: noon})
	require.NoError(t, err)
	require.True(t, res.Applied)
	now := look(t, d)
	require.Equal(t, "<html>mine</html>", now["artifact.html"])
	require.Equal(t, "<html>mine</html>", now["run_state_repairs/20260103T120000.000Z/artifact.html"])
	require.Contains(t, now, rundir.StateFile)
}

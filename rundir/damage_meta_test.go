package rundir_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// older replaces a file by what it was one batch before the end.
func older(name string) change {
	return func(t *testing.T, d rundir.Dir) {
		s, before := whole(t), claimed(t)
		project(t, before, s, s.batches[:len(s.batches)-1]...)
		write(t, d, name, read(t, before, name))
	}
}

// metaDamages are rows of meta.json, run.json and decisions, compared with the events.
func metaDamages() []damage {
	const open = `{"id":"h-1","phase":"write"}`
	return []damage{
		{"meta.json is missing", "done", without(rundir.MetaFile)},
		{"meta.json is half a file", "paused", withFile(rundir.MetaFile, `{"version":1,"run_`)},
		{"meta.json is of another shape", "done", withKey("events", "7")},
		{"meta.json has another status", "paused", withKey("status", `"running"`)},
		{"meta.json has an empty status", "paused", withKey("status", `""`)},
		{"the end is in the events only", "done", withKey("status", `"running"`)},
		{"the end is in meta.json only", "paused", withKey("status", `"done"`)},
		{"the state in meta.json was changed", "paused", withKey("task", `"another"`)},
		{"a key of meta.json outside the events was changed", "done", withKey("summary", "{}")},
		{"the interruption is in the events only", "interrupted", together(withKey("status", `"awaiting_phase_handoff"`), withDecision("h-1", "continue"))},
		{"lines that meta.json has not seen", "done", older(rundir.MetaFile)},
		{"leftovers of a crash", "done", withFile(rundir.MetaFile+".tmp.abc", "{")},
		{"one byte of run.json was changed", "done", oneByte(rundir.ClaimFile)},
		{"events.jsonl and meta.json are missing", "done", without(rundir.EventsFile, rundir.MetaFile)},

		{"interrupted, and undecided", "interrupted", nothing},
		{"done, with a hand-off left over", "done", withKey("phase_handoff", open)},
		{"halted, with a hand-off left over", "halted", withKey("phase_handoff", open)},
		{"the hand-off is asked for in the events only", "asking", withKey("phase_handoff", "null")},
		{"the hand-off of a review is lost", "awaiting its review", withKey("phase_handoff", "null")},
		{"the hand-off is missing, and decided", "asking", together(withKey("phase_handoff", "null"), withDecision("h-1", "continue"))},
		{"the hand-off of a failed run is lost", "failed", withKey("phase_handoff", "null")},
		{"the hand-off of an interrupted run is lost", "interrupted", withKey("phase_handoff", "null")},
		{"the hand-off was never asked for", "paused", withKey("phase_handoff", open)},
		{"another hand-off than the one asked for", "asking", withKey("phase_handoff", `{"id":"h-0"}`)},
		{"the hand-off has another phase", "asking", withKey("phase_handoff", `{"id":"h-1","phase":"another"}`)},
		{"a halt was decided, and meta.json has running", "halted", together(withKey("status", `"running"`), withDecision("h-1", "halt"))},
		{"a halt was decided, and the run has failed", "failed", withDecision("h-1", "halt")},
		{"a halt was decided, the run waits, and a key was changed", "asking", together(withDecision("h-1", "halt"), withKey("task", `"another"`))},
		{"a halt of another hand-off was decided", "asking", withDecision("h-0", "halt")},
		{"a decision cannot be read", "asking", withFile("phase_handoff_decisions/h-1.json", `{"handoff_id":"h-`)},
	}
}

// TestCheckWithoutWorkflow compares the status with that of the workflow: the one damage that is not in the directory.
func TestCheckWithoutWorkflow(t *testing.T) {
	for _, row := range []struct {
		dir   string
		live  run.Liveness
		shown run.Status
		lost  bool
	}{
		{"running", run.LiveOpen, run.Running, false},
		{"running", run.LiveClosed, run.Interrupted, true},
		{"running", run.LiveGone, run.Interrupted, true},
		{"running", run.LiveUnknown, run.Running, false},
		{"running", "", run.Running, false},
		{"paused", run.LiveGone, run.Interrupted, true},
		{"done", run.LiveClosed, run.Done, false},
		{"done", run.LiveGone, run.Done, false},
	} {
		t.Run(fmt.Sprintf("%s, %s", row.dir, row.live), func(t *testing.T) {
			d, blobs := directoryOf(t, row.dir)
			effective := run.EffectiveStatus{Liveness: row.live, Detail: "detail"}
			r := checkWith(t, d, rundir.CheckOptions{EffectiveStatus: effective})
			require.Equal(t, row.shown, r.EffectiveStatus.Status)
			require.Equal(t, "detail", r.EffectiveStatus.Detail)
			require.Equal(t, !row.lost, r.OK)
			if !row.lost {
				require.Empty(t, r.Issues)
				return
			}
			require.Equal(t, []rundir.Code{rundir.RunningWithoutLiveWorkflow}, codesOf(r))
			require.Equal(t, fmt.Sprintf("the run is recorded as %s, and its workflow is %s", row.dir, row.live),
				r.Issues[0].Message)
			require.Equal(t, "starter resume "+d.Root, r.Issues[0].Hint)
			before := look(t, d)
			res, err := rundir.Repair(t.Context(), d,
				rundir.RepairOptions{Apply: true, EffectiveStatus: effective, Blobs: blobs})
			require.NoError(t, err)
			require.False(t, res.Applied, "only the next epoch may record that it was interrupted")
			require.Equal(t, before, look(t, d))
		})
	}
}

// TestInterruptedQuestion: of a run whose workflow is gone and that left a question open, check and repair report that
// an operator has to decide.
func TestInterruptedQuestion(t *testing.T) {
	gone := run.NewEffectiveStatus("", run.LiveClosed, "its workflow has been terminated")
	for name, row := range map[string]struct {
		ask  func(*story)
		id   string
		open string
	}{
		"hand-off": {(*story).asks, "h-1", "no decision on hand-off h-1 is on disk\n"},
		"gate": {func(s *story) {
			s.twoPasses()
			s.add(run.KindGateRequested, run.QuestionRequested{ID: "g-1", Trigger: run.TriggerCheckFailed,
				Actions: run.Offered(run.QuestionGate, run.TriggerCheckFailed)})
		}, "g-1", "no decision on the question g-1 is in the journal\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d, blobs := ranWith(row.ask)(t)
			r := checkWith(t, d, rundir.CheckOptions{EffectiveStatus: gone})
			require.Equal(t, run.Interrupted, r.EffectiveStatus.Status)
			require.True(t, r.NeedsOperator(), "%v", r.Issues)
			messages := ""
			for _, i := range r.Issues {
				require.Equal(t, "starter decide "+d.Root, i.Hint, i.Code)
				messages += i.Message + "\n"
			}
			require.Contains(t, messages, "the run was interrupted, and the question "+row.id+" is not decided\n")
			require.Contains(t, messages, row.open)
			before := look(t, d)
			res, err := rundir.Repair(t.Context(), d,
				rundir.RepairOptions{Apply: true, EffectiveStatus: gone, Blobs: blobs})
			require.NoError(t, err)
			require.True(t, res.NeedsOperatorDecision)
			require.Contains(t, res.RepairHint, "waits for a decision on "+row.id+": decide it (starter decide "+d.Root+")")
			require.Equal(t, before, look(t, d))

			withDecision(row.id, "continue")(t, d)
			r = checkWith(t, d, rundir.CheckOptions{EffectiveStatus: gone})
			require.Equal(t, []rundir.Code{rundir.RunningWithoutLiveWorkflow}, codesOf(r), "it is decided")
			require.False(t, r.NeedsOperator())
		})
	}
}

// TestHintsCanBeFollowed: commands in hints name the directory, in quotes where a shell needs them.
func TestHintsCanBeFollowed(t *testing.T) {
	d, _ := directoryOf(t, "paused")
	remove(t, d, rundir.MetaFile)
	require.Equal(t, "starter repair-state "+d.Root+" --apply", check(t, d).Issues[0].Hint)
	spaced := d.Root + " x"
	require.NoError(t, os.Rename(d.Root, spaced))
	require.Equal(t, "starter repair-state '"+spaced+"' --apply", check(t, rundir.At(spaced)).Issues[0].Hint)
}

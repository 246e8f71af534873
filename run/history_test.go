package run_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

func gather(s run.State, h run.History, events []run.Event) *run.Fold {
	f := run.NewFold(s, h)
	for _, e := range events {
		f.Apply(e)
	}
	return f
}

// TestOutcomesOfPhases: only what is listed counts, however it is written.
func TestOutcomesOfPhases(t *testing.T) {
	for _, r := range []struct {
		outcome           any
		completed, failed bool
	}{
		{"ok", true, false}, {" OK ", true, false}, {"skipped", true, false}, {"Skipped: clean", true, false},
		{"failed", false, true},
		{"REJECTED ", false, true}, {"error", false, true}, {"halted: by hand", false, false},
		{"incomplete", false, false}, {"okay", false, false},
		{"failed: twice", false, false}, {"DONE", false, false}, {"", false, false}, {nil, false, false},
		{7, false, false},
	} {
		events := (&story{t: t}).add(run.KindRunStart, "", opening()).add(run.KindPhaseEnd, "",
			map[string]any{"phase_key": "a", "outcome": r.outcome}).events
		shot := gather(run.State{}, run.History{}, events).Snapshot()
		require.Equal(t, r.completed, len(shot.CompletedPhases) == 1, r.outcome)
		require.Equal(t, r.failed, len(shot.FailedPhases) == 1, r.outcome)
	}
}

// TestSnapshotKeys: every key is there, whatever the stream contains.
func TestSnapshotKeys(t *testing.T) {
	raw, err := json.Marshal(run.NewFold(run.State{}, run.History{}).Snapshot())
	require.NoError(t, err)
	require.Equal(t,
		`{"status":"unknown","seq":0,"terminal":false,"seen_phases":[],"completed_phases":[],"failed_phases":[],`+
			`"active_phase":null,"active_handoff_id":null,"active_handoff_phase":null,"seen_handoff_ids":[]}`, string(raw))

	s := (&story{t: t}).add(run.KindRunStart, "", opening())
	s.add(run.KindPhaseStart, "", run.PhaseStart{Key: "plan"})
	s.add(run.KindHandoffRequested, "", run.QuestionRequested{Kind: run.QuestionHandoff, ID: "h1", Phase: "plan"})
	s.add(run.KindRunEnd, "", run.RunEnd{Status: run.Failed})
	raw, err = json.Marshal(gather(run.State{}, run.History{}, s.events).Snapshot())
	require.NoError(t, err)
	require.Equal(t,
		`{"status":"failed","seq":4,"terminal":true,"seen_phases":["plan"],"completed_phases":[],"failed_phases":[],`+
			`"active_phase":"plan","active_handoff_id":"h1","active_handoff_phase":"plan","seen_handoff_ids":["h1"]}`,
		string(raw))
}

// TestInvalidTransitionIsNamed: the event changes nothing but the list of hand-offs.
func TestInvalidTransitionIsNamed(t *testing.T) {
	s := (&story{t: t}).add(run.KindRunStart, "", opening()).add(run.KindRunEnd, "", run.RunEnd{Status: run.Done})
	s.add(run.KindHandoffRequested, "", run.QuestionRequested{Kind: run.QuestionHandoff, ID: "late"})
	f := gather(run.State{}, run.History{}, s.events)
	require.Equal(t, "a run that is done cannot become awaiting_phase_handoff (allowed: none)",
		f.Current().InvalidTransition)
	require.Equal(t, run.Done, f.State().Status)
	require.Equal(t, []string{"late"}, f.Snapshot().SeenHandoffIDs)
}

// TestFoldIsApply: the accumulator comes to the same as Apply, from any cut on, taken through JSON as continue-as-new
// does.
func TestFoldIsApply(t *testing.T) {
	for name, events := range journals(t) {
		whole := gather(run.State{}, run.History{}, events)
		for cut := range events {
			half := gather(run.State{}, run.History{}, events[:cut])
			applied := fold(run.State{}, events[:cut])
			require.Equal(t, picture(t, applied), picture(t, half.State()), "%s, cut before event %d", name, cut+1)
			require.Equal(t, picture(t, carried(t, whole.State())), picture(t, fold(carried(t, applied), events[cut:])),
				"%s, cut before event %d", name, cut+1)
			before := picture(t, half.State())
			rest := gather(carried(t, half.State()), throughJSON(t, half.History()), events[cut:])
			require.Equal(t, picture(t, carried(t, whole.State())), picture(t, carried(t, rest.State())),
				"%s, cut before event %d", name, cut+1)
			require.Equal(t, whole.Snapshot(), rest.Snapshot(), "%s, cut before event %d", name, cut+1)
			gather(half.State(), half.History(), events[cut:])
			require.Equal(t, before, picture(t, half.State()), "%s: what was given out changed", name)
		}
	}
}

func throughJSON(t testing.TB, h run.History) run.History {
	t.Helper()
	raw, err := json.Marshal(h)
	require.NoError(t, err)
	var back run.History
	require.NoError(t, json.Unmarshal(raw, &back))
	return back
}

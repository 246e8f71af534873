package run_test

import (
	"encoding/json"
	"fmt"
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

func (s *story) phase(key, outcome string) *story {
	s.add(run.KindPhaseStart, "", run.PhaseStart{Key: key, Title: "opening " + key})
	return s.add(run.KindPhaseEnd, "", run.PhaseEnd{Key: key, Title: "closing " + key, Outcome: outcome})
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

func TestHistory(t *testing.T) {
	s := (&story{t: t}).add(run.KindRunStart, "", opening()).phase("a", "ok").phase("b", "failed").phase("a", "ok")
	s.add(run.KindHandoffRequested, "", run.QuestionRequested{Kind: run.QuestionHandoff, ID: "h1", Phase: "b"}) // 8
	s.add(run.KindHandoffDecided, "", run.QuestionDecided{Kind: run.QuestionHandoff, ID: "h1",
		Action: "retry_feedback"})
	before := fold(run.State{}, s.events)
	s.phase("b", "ok").phase("c", "weird").phase("a", "rejected") // up to 15
	s.add(run.KindHandoffRequested, "", run.QuestionRequested{Kind: run.QuestionHandoff, ID: "h2", Phase: "a"})
	f := gather(run.State{}, run.History{}, s.events)
	shot := f.Snapshot()
	require.Equal(t, []string{"a", "b", "c"}, shot.SeenPhases)
	require.Equal(t, []string{"b"}, shot.CompletedPhases)
	require.Equal(t, []string{"a"}, shot.FailedPhases)
	require.Equal(t, []string{"h1", "h2"}, shot.SeenHandoffIDs)
	require.Equal(t, "h2", *shot.ActiveHandoffID)
	require.Equal(t, "a", *shot.ActiveHandoffPhase)

	held := f.History()
	s.add(run.KindRunReverted, "", run.RunReverted{To: 9, Cause: "revert", State: &before})
	f = gather(run.State{}, run.History{}, s.events)
	shot = f.Snapshot()
	require.Equal(t, []string{"a", "b"}, shot.SeenPhases)
	require.Equal(t, []string{"a"}, shot.CompletedPhases, "what had completed before has completed again")
	require.Equal(t, []string{"b"}, shot.FailedPhases)
	require.Equal(t, []string{"h1", "h2"}, shot.SeenHandoffIDs, "a hand-off that was asked was asked")
	require.Nil(t, shot.ActiveHandoffID)

	s.phase("d", "ok")
	again := gather(run.State{}, held, s.events[15:])
	require.Equal(t, []string{"a", "b", "d"}, again.Snapshot().SeenPhases)
	require.Equal(t, []string{"a", "b", "c"}, held.SeenPhases(), "a history that was given out stays as it is")
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

func TestTerminal(t *testing.T) {
	want := map[run.Status]bool{run.Done: true, run.Halted: true, run.Cancelled: true, run.Failed: true}
	for _, s := range statuses() {
		require.Equal(t, want[s], run.Snapped(run.State{Status: s}, run.History{}).Terminal, s)
	}
}

// TestIllegalEventsAreNamed, a hundred of them, and counted.
func TestIllegalEventsAreNamed(t *testing.T) {
	s := (&story{t: t}).add(run.KindRunStart, "", opening()).add(run.KindRunEnd, "", run.RunEnd{Status: run.Done})
	for range 150 {
		s.add(run.KindHandoffRequested, "", run.QuestionRequested{Kind: run.QuestionHandoff, ID: "late"})
	}
	f := gather(run.State{}, run.History{}, s.events)
	require.Equal(t, int64(150), f.InvalidTransitions().Count)
	require.Len(t, f.InvalidTransitions().First, 100)
	require.Equal(t, run.IrregularEvent{Seq: 3,
		Message: "a run that is done cannot become awaiting_phase_handoff (allowed: none)"}, f.InvalidTransitions().First[0])
	require.Equal(t, run.Done, f.State().Status)
	require.Equal(t, []string{"late"}, f.Snapshot().SeenHandoffIDs)
}

// TestFoldIsApply: the accumulator comes to the same as Apply, from any cut on, taken through JSON.
func TestFoldIsApply(t *testing.T) {
	for name, events := range journals(t) {
		whole := gather(run.State{}, run.History{}, events)
		require.Equal(t, picture(t, fold(run.State{}, events)), picture(t, whole.State()), name)
		for cut := range events {
			half := gather(run.State{}, run.History{}, events[:cut])
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

// TestStateGivenOutStays: the returned State does not change when the fold continues with the same slices.
func TestStateGivenOutStays(t *testing.T) {
	for name, events := range journals(t) {
		f := run.NewFold(run.State{}, run.History{})
		var given []run.State
		var pictures []string
		for _, e := range events {
			f.Apply(e)
			given = append(given, f.State())
			pictures = append(pictures, picture(t, f.State()))
		}
		for i, s := range given {
			require.Equal(t, pictures[i], picture(t, s), fmt.Sprint(name, i))
		}
	}
}

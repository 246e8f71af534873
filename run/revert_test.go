package run

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// numbered is a state whose fields all have different values, other ones for each first number.
func numbered(first int) State {
	var s State
	number(reflect.ValueOf(&s).Elem(), &first, 0)
	return s
}

// sameFields lists the exported fields that two states have in common and no third one.
func sameFields(got, want State) []string {
	var same []string
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if f := g.Type().Field(i); f.IsExported() && reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			same = append(same, f.Name)
		}
	}
	return same
}

// After a revert each part of the state is that of the checkpoint, that of now, or neither.
func TestRevertedTakesFromCheckpointAndNow(t *testing.T) {
	before, now := numbered(1), numbered(5002) // flags differ, too
	before.Spent, before.Budget.WarnUSD = Totals{USD: 4, Unknown: 2}, 5
	now.Spent, now.SunkUSD, now.SunkUnknown = Totals{USD: 7, Unknown: 4, EstimatedUSD: 1}, 2, 3
	now.Budget = Budget{CapUSD: 50, WarnUSD: 9, Hours: 3}
	now.Status, before.Status = Paused, Halted
	now.Plan.Seq, now.Raised, before.Raised, before.Warned, now.Warned = 77, true, true, false, false
	before.MoreFiles, now.MoreFiles, before.ListPrice, now.ListPrice = true, false, false, true
	before.Lanes.Active = nil                // TestNamesOfLanes has theirs
	for _, s := range []State{before, now} { // TestCostOfProjects has theirs
		for i := range s.Projects {
			s.Projects[i].USD, s.Projects[i].Unknown = 0, 0
		}
	}
	amended := *now.Plan
	got := Checkpoint{State: before}.Reverted(now)

	require.Equal(t, amended, *now.Plan, "the state before the revert stays as it was")
	require.Equal(t, []string{"Epoch", "Starts", "Stages", "Budget", "Means", "ListPrice", "Used", "Late", "Problem", "Refused",
		"Instructions", "Forge"}, sameFields(got, now))
	require.Equal(t, Running, got.Status)
	require.Equal(t, now.Generation+1, got.Generation)
	require.Equal(t, 5.0, got.SunkUSD, "9 USD in all, 4 of them before the checkpoint")
	require.Equal(t, 5, got.SunkUnknown)
	require.True(t, got.Warned, "9 of 9 USD are spent")
	amended.From = &before.Next
	require.Equal(t, &amended, got.Plan, "the plan as amended last, from the place that the run goes back to")
	var none []string
	for i, v := 0, reflect.ValueOf(got); i < v.NumField(); i++ {
		if f := v.Type().Field(i); f.IsExported() && v.Field(i).IsZero() {
			none = append(none, f.Name)
		}
	}
	require.Equal(t, []string{"Reason", "FinishedAt", "InFlight", "Raised", "Need", "Failure", "Limited", "Review",
		"Decided",
		"Again", "Feedback", "About", "Questions", "Gate", "Started", "InvalidTransition"}, none)
	none = append(none, "Status", "Generation", "SunkUSD", "SunkUnknown", "Warned", "Plan", "Markers")
	v := reflect.TypeFor[State]()
	all := append(append(sameFields(got, before), sameFields(got, now)...), none...)
	for i := range v.NumField() {
		if f := v.Field(i); f.IsExported() {
			require.Contains(t, all, f.Name, "it is of the checkpoint")
		}
	}

	now.Budget.WarnUSD = 9.01
	require.False(t, Checkpoint{State: before}.Reverted(now).Warned)
	now.Budget.WarnUSD = 0
	require.False(t, Checkpoint{State: before}.Reverted(now).Warned)
	now.Spent, now.SunkUSD, now.SunkUnknown = Totals{USD: 1}, 0, 0
	got = Checkpoint{State: before}.Reverted(now)
	require.Zero(t, got.SunkUSD)
	require.Zero(t, got.SunkUnknown)
	now.Plan.Seq = 0
	require.Equal(t, now.Plan, Checkpoint{State: before}.Reverted(now).Plan, "the plan of the start counts from the start")
	now.Plan = nil
	require.Nil(t, Checkpoint{State: before}.Reverted(now).Plan)
}

func TestStoredCheckpoints(t *testing.T) {
	s := State{Version: StateVersion, RunID: "r", ThreadID: "t", Seq: 7, Epoch: 9}
	c := Checkpoint{Version: 1, RunID: "r", ID: "cp-7", Seq: 7, State: s}
	const reads, other = ", and this program reads 1 and 2", "it does not belong to its name: it holds "
	for want, change := range map[string]func(*Checkpoint){
		"":                                     func(*Checkpoint) {},
		"it has version 2 and state 2" + reads: func(c *Checkpoint) { c.Version = 2 },
		"it has version 1 and state 3" + reads: func(c *Checkpoint) { c.State.Version = 3 },
		"it has version 1 and state 1" + reads: func(c *Checkpoint) { c.State.Version = 1 },
		"it is damaged: it has no version":     func(c *Checkpoint) { c.Version = 0 },
		other + "event 7 of run r":             func(c *Checkpoint) { c.RunID = "x" },
		other + "event 7 of run other":         func(c *Checkpoint) { c.State.RunID = "other" },
		other + "event 8 of run r":             func(c *Checkpoint) { c.State.Seq = 8 },
	} {
		changed := c
		change(&changed)
		raw, err := json.Marshal(changed)
		require.NoError(t, err)
		got, err := ReadCheckpoint(raw, "r", "cp")
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, changed, got)
			continue
		}
		require.EqualError(t, err, "checkpoint cp: "+want)
	}
	_, err := ReadCheckpoint([]byte("{"), "r", "cp")
	require.EqualError(t, err, "checkpoint cp: it is damaged: unexpected end of JSON input")

	for name, row := range map[string]struct {
		head *CheckpointRef
		seq  int64
		made bool
	}{
		"made by this event":     {&CheckpointRef{ID: "turn-3", Seq: 7}, 7, true},
		"made by the one before": {&CheckpointRef{ID: "turn-3", Seq: 6}, 7, false},
		"none":                   {nil, 7, false},
		"of an empty state":      {&CheckpointRef{ID: "turn-3"}, 0, false},
	} {
		s.Checkpoint, s.Seq = row.head, row.seq
		got, made := NewCheckpoint(s, "chain")
		require.Equal(t, row.made, made, name)
		if made {
			require.Equal(t, Checkpoint{Version: 1, RunID: "r", ID: "turn-3", Seq: 7, Chain: "chain", State: s}, got)
		} else {
			require.Zero(t, got, name)
		}
	}
	for id, want := range map[string]bool{"cp-7": true, "cp-07": false, "7": false, "cp-": false, "cp-8": false,
		"turn-7": false} {
		require.Equal(t, want, isUnnamed(id, 7), id)
	}
	require.True(t, isUnnamed(UnnamedID(1234567890123456789), 1234567890123456789))
}

// Events that a revert left behind, and those that a later one brought back.
func TestEventsInForce(t *testing.T) {
	carried := &State{}
	back := func(to int64, s *State) Event {
		raw, err := Payload(RunReverted{To: to, State: s})
		require.NoError(t, err)
		return Event{Kind: KindRunReverted, Payload: raw}
	}
	plain, start := Event{Kind: KindPhaseStart}, Event{Kind: KindRunStart}
	for name, row := range map[string]struct {
		events []Event
		want   []int64
		ranges Ranges
	}{
		"no revert": {[]Event{start, plain, plain}, []int64{1, 2, 3}, Ranges{{1, 3}}},
		"one": {[]Event{start, plain, plain, back(1, carried), plain}, []int64{1, 4, 5},
			Ranges{{1, 1}, {4, 5}}},
		"to the event before": {[]Event{start, plain, back(2, carried)}, []int64{1, 2, 3}, Ranges{{1, 2}, {3, 3}}},
		"to nothing":          {[]Event{plain, plain, back(0, carried), plain}, []int64{3, 4}, Ranges{{1, 0}, {3, 4}}},
		"one behind another": {[]Event{start, plain, back(1, carried), plain, plain, back(4, carried)},
			[]int64{1, 3, 4, 6}, Ranges{{1, 1}, {3, 4}, {6, 6}}},
		"a revert is left behind": {[]Event{start, plain, plain, back(1, carried), plain, back(2, carried), plain},
			[]int64{1, 2, 6, 7}, Ranges{{1, 2}, {6, 7}}},
		"to a revert": {[]Event{start, plain, back(1, carried), plain, back(3, carried)}, []int64{1, 3, 5},
			Ranges{{1, 1}, {3, 3}, {5, 5}}},
		"without a state":   {[]Event{start, plain, back(1, nil), plain}, []int64{1, 2, 3, 4}, Ranges{{1, 4}}},
		"to a later event":  {[]Event{start, back(2, carried), plain}, []int64{1, 2, 3}, Ranges{{1, 3}}},
		"to a negative one": {[]Event{start, back(-1, carried), plain}, []int64{1, 2, 3}, Ranges{{1, 3}}},
	} {
		var reverts Reverts
		for i := range row.events {
			row.events[i] = row.events[i].At(int64(i) + 1)
			reverts.Take(row.events[i])
		}
		require.Equal(t, row.ranges, reverts.InForce(), name)
		var holds []int64
		for seq := int64(0); seq <= int64(len(row.events))+1; seq++ {
			if row.ranges.Has(seq) {
				holds = append(holds, seq)
			}
		}
		require.Equal(t, row.want, holds, name)
		var got []int64
		for _, e := range InForce(row.events) {
			got = append(got, e.Seq)
		}
		require.Equal(t, row.want, got, name)
		for i := range row.events {
			row.events[i].Seq = 0
		}
		require.Len(t, InForce(row.events), len(row.want), "%s: the place of a line counts", name)
	}
	require.False(t, Ranges(nil).Has(1))
}

// A recorder that gets whole events comes to the same history as the fold.
func TestRecorderIsTheFold(t *testing.T) {
	event := func(seq int64, kind Kind, payload any) Event {
		raw, err := Payload(payload)
		require.NoError(t, err)
		return Event{Seq: seq, Kind: kind, Payload: raw}
	}
	ask := func(id string) QuestionRequested { return QuestionRequested{Kind: QuestionHandoff, ID: id, Phase: "b"} }
	gate := QuestionGate.Spec()
	events := []Event{
		event(1, KindRunStart, RunStart{RunID: "r", Epoch: 1}),
		event(2, KindPhaseStart, PhaseStart{Key: "a", Title: "A"}), event(3, KindPhaseEnd, PhaseEnd{Key: "a", Outcome: "ok"}),
		event(4, KindPhaseStart, PhaseStart{Key: "b", Dir: "d"}),
		event(5, KindPhaseEnd, PhaseEnd{Key: "b", Outcome: "failed"}),
		event(6, KindHandoffRequested, ask("h1")),
		event(7, gate.Requested, QuestionRequested{Kind: QuestionGate, ID: "g1"}),
		event(8, KindPhaseStart, PhaseStart{Key: "c"}), event(9, KindPhaseEnd, PhaseEnd{Key: "c", Outcome: "Skipped: x"}),
		event(10, KindPhaseEnd, PhaseEnd{Key: "a", Outcome: "rejected"}),
		event(11, KindPhaseEnd, PhaseEnd{Key: "a", Outcome: "other"}),
		event(12, KindRunReverted, RunReverted{To: 9, State: &State{}}),
		event(13, KindHandoffRequested, ask("h1")), event(14, KindHandoffRequested, ask("h2")),
		event(15, KindPhaseEnd, PhaseEnd{Key: "b", Outcome: "ok"}), event(16, KindPhaseStart, PhaseStart{Key: "a"}),
		event(17, KindRunReverted, RunReverted{To: 3}), event(18, Kind("unknown"), PhaseStart{Key: "z"}),
	}
	want := History{
		Seen:      []PhaseMark{{"a", 2}, {"b", 4}, {"c", 8}},
		Completed: []PhaseMark{{"a", 3}, {"c", 9}, {"b", 15}}, Failed: []PhaseMark{{"b", 5}}, Handoffs: []string{"h1", "h2"},
	}
	for cut := range events {
		r, f := NewRecorder(History{}), NewFold(State{}, History{})
		for i, e := range events {
			if i == cut {
				r = NewRecorder(r.History())
			}
			r.Apply(e)
			f.Apply(e)
		}
		require.Equal(t, want, r.History(), "taken up before event %d", cut+1)
		require.Equal(t, want, f.History())
	}
	require.Equal(t, []string{"a", "c", "b"}, want.CompletedPhases())
	require.Equal(t, []string{}, want.FailedPhases())
	mixed := History{Completed: []PhaseMark{{"a", 1}, {"b", 4}, {"a", 6}},
		Failed: []PhaseMark{{"a", 3}, {"c", 5}, {"b", 7}}}
	require.Equal(t, []string{"a"}, mixed.CompletedPhases())
	require.Equal(t, []string{"c", "b"}, mixed.FailedPhases())
}

// The marks of ends count upwards, even where a damaged stream repeats a number.
func TestMarksCountUpwards(t *testing.T) {
	r := NewRecorder(History{})
	for _, end := range []struct{ phase, outcome string }{{"a", "ok"}, {"a", "failed"}, {"a", "ok"}, {"b", "error"},
		{"", "ok"},
		{"b", "error"}} {
		r.begin(end.phase, 5)
		r.end(end.phase, end.outcome, 5)
	}
	h := r.History()
	require.Equal(t, []PhaseMark{{"a", 5}, {"a", 7}}, h.Completed)
	require.Equal(t, []PhaseMark{{"a", 6}, {"b", 8}}, h.Failed)
	require.Equal(t, []PhaseMark{{"a", 5}, {"b", 5}}, h.Seen)
	r.begin("c", 3)
	require.Equal(t, PhaseMark{"c", 5}, slices.Clone(r.History().Seen)[2])
	r.revert(6)
	require.Equal(t, History{Seen: h.Seen[:2:2], Completed: h.Completed[:1], Failed: h.Failed[:1], Handoffs: []string{}},
		History{Seen: r.History().Seen[:2:2], Completed: r.History().Completed, Failed: r.History().Failed,
			Handoffs: r.History().Handoffs})
	require.Equal(t, []PhaseMark{{"a", 5}, {"a", 7}}, h.Completed, "what was handed out stays")
}

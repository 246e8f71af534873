package run

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func laneEvent(t *testing.T, s State, kind Kind, lane string, payload any) State {
	t.Helper()
	raw, err := Payload(payload)
	require.NoError(t, err)
	phase := "work"
	ev := Event{Seq: s.Seq + 1, TS: "2026-11-20T10:00:00.000Z", Kind: kind, Phase: &phase, Lane: lane, Payload: raw}
	line, err := ev.Line()
	require.NoError(t, err)
	read, err := ParseLine(line)
	require.NoError(t, err)
	require.Equal(t, lane, read.Lane, "the line keeps its lane")
	return Apply(s, read)
}

func inLanes(t *testing.T, count int) State {
	tree := Blob{Digest: strings.Repeat("0", 64)}
	s := State{Version: StateVersion, Status: Running, Tree: &tree, Phase: "work", PhaseOpen: true, Next: Place{Round: 1}}
	return laneEvent(t, s, KindStageExpanded, "", StageExpanded{Stage: "work", Count: count, Digest: "d"})
}

// Events of lanes interleave: each moves its own cursor, and the tree of the run changes by merges only, in the order
// of the list.
func TestLanesHaveTheirOwnPlace(t *testing.T) {
	s := inLanes(t, 2)
	base := *s.Tree
	tree := func(n int) *Blob { return &Blob{Digest: fmt.Sprintf("%064d", n)} }
	for i, key := range []string{"a", "b"} {
		s = laneEvent(t, s, KindLaneStarted, key, LaneStarted{Index: i, Name: key + ".go"})
		s = laneEvent(t, s, KindPassStart, key, PassStart{Pass: Pass{Step: "work/1", Lane: key}, Call: key})
	}
	require.Len(t, s.InFlight, 2)
	end := PassEnd{Pass: Pass{Step: "work/1", Lane: "b"}, Outcome: CategoryOK, Tree: tree(2),
		Next: &Place{Round: 1, Step: 1}, Spend: Spend{USD: 1}}
	s = laneEvent(t, s, KindPassEnd, "b", end)
	s = laneEvent(t, s, KindWorkspaceUpdated, "b", WorkspaceUpdated{Tree: *tree(2)})
	require.Len(t, s.InFlight, 1, "the call of the other lane runs")
	require.Equal(t, base, *s.Tree)
	require.Equal(t, *tree(2), *s.InLane("b").Tree)
	require.Equal(t, base, *s.InLane("a").Tree)
	require.Equal(t, 1, s.InLane("b").Next.Step)
	require.Zero(t, s.InLane("a").Next.Step)
	require.Equal(t, Place{Round: 1}, s.Next)
	require.InDelta(t, 1.0, s.Total(), 0.001, "costs are those of the run")

	s = laneEvent(t, s, KindLaneEnded, "b", LaneEnded{Index: 1, Name: "b.go", Outcome: LaneOutcomeDone, Tree: tree(2)})
	require.Equal(t, 0, s.Lanes.Merged, "an earlier lane is at work")
	s = laneEvent(t, s, KindLaneEnded, "a", LaneEnded{Index: 0, Name: "a.go", Outcome: LaneOutcomeFailed, Reason: "no"})
	require.Equal(t, 1, s.Lanes.Merged, "there is nothing to merge of it")
	s = laneEvent(t, s, KindLaneMerged, "b", LaneMerged{Index: 1, Name: "b.go", Tree: *tree(3), Changed: 1})
	require.Equal(t, *tree(3), *s.Tree)
	require.Equal(t, 2, s.Lanes.Merged)
	require.Empty(t, s.Lanes.Finished)
	require.Equal(t, "1 of 2 lanes done, 1 failed", s.Lanes.Text())
	require.Empty(t, s.InFlight)
}

// A lane whose changes conflict is active again, with its tree.
func TestConflictReactivatesALane(t *testing.T) {
	s := inLanes(t, 1)
	changed := &Blob{Digest: strings.Repeat("1", 64)}
	s = laneEvent(t, s, KindLaneStarted, "a", LaneStarted{Name: "a.go"})
	s = laneEvent(t, s, KindLaneEnded, "a", LaneEnded{Name: "a.go", Outcome: LaneOutcomeDone, Tree: changed})
	s = laneEvent(t, s, KindLaneWaiting, "a", LaneWaiting{
		Name: "a.go", LaneWait: LaneWait{Why: LaneConflict, Question: "?"},
	})
	require.Equal(t, "0 of 1 lane done, 1 waiting", s.Lanes.Text())
	l, ok := s.Lane("a")
	require.True(t, ok)
	require.Equal(t, changed, l.Tree)
	s = laneEvent(t, s, KindLaneContinued, "a", LaneContinued{Name: "a.go", Action: "retry", Redo: true, Tree: s.Tree})
	l, _ = s.Lane("a")
	require.Nil(t, l.Waiting)
	require.Nil(t, l.Tree)
	require.Equal(t, 1, s.InLane("a").Redo(), "its calls have other ids")
}

// The state keeps its size at any number of lanes, and a cursor stays small.
func TestStateWithLanesIsBounded(t *testing.T) {
	s := inLanes(t, 1000)
	blob := Blob{Digest: strings.Repeat("2", 64), Size: 1000, Chars: 1000}
	for i := range MaxActiveLanes {
		key := fmt.Sprintf("%012d", i)
		s = laneEvent(t, s, KindLaneStarted, key, LaneStarted{Index: i, Name: strings.Repeat("n", 80)})
		for step := range 3 {
			s = laneEvent(t, s, KindPassEnd, key, PassEnd{
				Pass:    Pass{Step: fmt.Sprintf("work/%d", step+1), Role: "reviewer", Lane: key},
				Outcome: CategoryOK, Reply: &blob, Tree: &blob, Next: &Place{Round: 1, Step: step + 1},
			})
		}
	}
	before := size(t, s)
	for _, l := range s.Lanes.Active {
		require.LessOrEqual(t, size(t, l), 1024)
	}
	for i := range MaxFinishedLanes + MaxActiveLanes + MaxWaitingLanes {
		index := MaxActiveLanes + i
		key := fmt.Sprintf("%012d", index)
		s = laneEvent(t, s, KindLaneStarted, key, LaneStarted{Index: index, Name: "name.go"})
		s = laneEvent(t, s, KindLaneEnded, key, LaneEnded{
			Index: index, Name: "name.go", Outcome: LaneOutcomeDone, Tree: &blob,
		})
	}
	require.LessOrEqual(t, size(t, s), 64<<10)
	require.LessOrEqual(t, before, 24<<10)
}

// Finished lanes leave the state for the stored list, and are merged in order when they are back.
func TestFinishedLanesAreStored(t *testing.T) {
	s := inLanes(t, 4)
	for i, key := range []string{"a", "b", "c", "d"} {
		s = laneEvent(t, s, KindLaneStarted, key, LaneStarted{Index: i, Name: key})
	}
	tree := &Blob{Digest: strings.Repeat("1", 64)}
	for i, key := range []string{"b", "c", "d"} {
		s = laneEvent(t, s, KindLaneEnded, key, LaneEnded{Index: i + 1, Name: key, Outcome: LaneOutcomeDone, Tree: tree})
	}
	rows := s.Lanes.Finished[1:]
	s = laneEvent(t, s, KindLanesStored, "", LanesStored{Lanes: []int{2, 3}, Digest: "list"})
	require.Len(t, s.Lanes.Finished, 1)
	require.False(t, s.Lanes.NextStored(), "the first lane works")
	s = laneEvent(t, s, KindLaneEnded, "a", LaneEnded{Name: "a", Outcome: LaneOutcomeFailed})
	require.False(t, s.Lanes.NextStored(), "the second lane is in the state")
	s = laneEvent(t, s, KindLaneMerged, "b", LaneMerged{Index: 1, Name: "b", Tree: *tree})
	require.True(t, s.Lanes.NextStored())
	s = laneEvent(t, s, KindLanesLoaded, "", LanesLoaded{Rows: append([]FinishedLane{{Index: 1}}, rows...)})
	require.Equal(t, rows, s.Lanes.Finished, "the merged lane does not return")
	require.False(t, s.Lanes.NextStored())
}

// A question beside the work leaves the status as it is, until nothing else is left to do.
func TestQuestionBesideTheWork(t *testing.T) {
	s := inLanes(t, 1)
	s = laneEvent(t, s, KindGateRequested, "", QuestionRequested{Kind: QuestionGate, ID: "q", Beside: true,
		Actions: []string{ActionRetry}})
	require.Equal(t, Running, s.Status)
	q, open := s.Asks()
	require.True(t, open)
	require.Equal(t, "q", q.ID)
	require.Contains(t, s.Available(Running), Decide)
	s = laneEvent(t, s, KindQuestionAwaited, "", QuestionAwaited{ID: "another"})
	require.Equal(t, Running, s.Status)
	s = laneEvent(t, s, KindQuestionAwaited, "", QuestionAwaited{ID: "q"})
	require.Equal(t, AwaitingGateDecision, s.Status)
}

// The limits of lanes are kept apart: an answer in one lane ends its own.
func TestLimitsOfLanes(t *testing.T) {
	s := inLanes(t, 2)
	calls := []LimitedCall{{Lane: "a", N: 1}, {Lane: "b", N: 2}}
	for i, key := range []string{"a", "b"} {
		s = laneEvent(t, s, KindLaneStarted, key, LaneStarted{Index: i, Name: key})
	}
	s = laneEvent(t, s, KindRunLimited, "", RunLimited{Limited: *NewLimited(calls)})
	s = laneEvent(t, s, KindRunUnlimited, "", RunUnlimited{Cause: LimitTimer})
	require.Equal(t, 2, s.InLane("b").Limited.Call("").N)
	s = laneEvent(t, s, KindPassEnd, "b", PassEnd{Pass: Pass{Step: "work/1", Lane: "b"}, Outcome: CategoryOK})
	require.Nil(t, s.InLane("b").Limited)
	require.Equal(t, 1, s.InLane("a").Limited.Call("").N)
}

func size(t *testing.T, v any) int {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return len(raw)
}

// A line without a lane is one of the run, whatever the line before it is.
func TestReaderForgetsTheLane(t *testing.T) {
	const lines = `{"seq":1,"ts":"2026-11-20T10:00:00.000Z","kind":"pass.end","lane":"a","payload":{}}` + "\n" +
		`{"seq":2,"ts":"2026-11-20T10:00:00.000Z","kind":"gate.decided","payload":{"id":"q"}}` + "\n"
	var lanes []string
	for line, err := range NewReader(strings.NewReader(lines), 0).Lines() {
		require.NoError(t, err)
		require.NoError(t, line.Err)
		lanes = append(lanes, line.Event.Lane)
	}
	require.Equal(t, []string{"a", ""}, lanes)
}

// TestActiveLanesAreDescribed: what each active lane does, in the order of the list.
func TestActiveLanesAreDescribed(t *testing.T) {
	s := State{Status: Running, Lanes: &Lanes{Count: 9, Active: []Lane{
		{Index: 0, Key: "a", Name: "a.go", Step: 1}, {Index: 1, Key: "b", Name: "b.go", Step: 2},
		{Index: 2, Key: "c", Name: "c.go"}, {Index: 3, Key: "d", Name: "d.go"},
		{Index: 4, Key: "e", Name: "e.go", Waiting: &LaneWait{Question: "two\nlines"}},
	}}}
	s.InFlight = []InFlightCall{
		{Lane: "a", Member: "one", Role: "x", Attempt: 1, StartedAt: "2"},
		{Lane: "a", Member: "two", Attempt: 3, StartedAt: "1"},
		{Lane: "", Role: "other", StartedAt: "0"}}
	s.Limited = NewLimited([]LimitedCall{{Lane: "d", N: 1, Until: "2026-03-01T10:00:00.000Z"}})
	require.Equal(t, []ActiveLane{
		{Number: 1, Name: "a.go", Does: "step 2 of 2, one, two, attempt 3", Since: "1"},
		{Number: 2, Name: "b.go", Does: "ends"},
		{Number: 3, Name: "c.go", Does: "step 1 of 2"}, {Number: 4, Name: "d.go", Does: "step 1 of 2, waits for a limit"},
		{Number: 5, Name: "e.go", Does: `waits for an operator: two\nlines`, Waiting: true},
	}, s.ActiveLanes(2))
	require.Equal(t, "step 3", s.ActiveLanes(0)[1].Does)
	s.Status = Paused
	require.Equal(t, "step 2 of 2", s.ActiveLanes(2)[0].Does, "a pause interrupts calls")
	require.Empty(t, State{}.ActiveLanes(2))
}

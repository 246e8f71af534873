package run

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFoldOfLanes(t *testing.T) {
	for _, row := range [][2]string{
		{"", "0 of 3 lanes done, 0 merged"},
		{"start start", "0 of 3 lanes done, 2 active, 0 merged; active 0 1"},
		{"start start start done:2 done:1", "2 of 3 lanes done, 1 active, 0 merged; active 0"},
		{"start start start done:2 done:0", "2 of 3 lanes done, 1 active, 0 merged; active 1; next 0"},
		{"start start start done:2 done:0 merge:0 unchanged:1", "3 of 3 lanes done, 2 merged; next 2"},
		{"start start start done:2 failed:1 done:0 merge:0", "2 of 3 lanes done, 1 waiting, 1 merged; asked 1"},
		{"start start start done:2 failed:1 skip:1 done:0", "2 of 3 lanes done, 1 failed, 0 merged; next 0"},
		{"start start start done:2 failed:1 skip:1 done:0 merge:0", "2 of 3 lanes done, 1 failed, 2 merged; next 2"},
		{"start start start unchanged:2 skip:1 done:0 merge:0", "2 of 3 lanes done, 1 failed, 3 merged"},
		{"start failed:0 start again:0", "0 of 3 lanes done, 2 active, 0 merged; active 0~2 1"},
		{"start done:0 conflict:0", "0 of 3 lanes done, 1 waiting, 0 merged; asked 0"},
		{"start done:0 conflict:0 again:0 done:0", "1 of 3 lanes done, 0 merged; next 0~2"},
		{"start done:0 conflict:0 skip:0", "0 of 3 lanes done, 1 failed, 1 merged"},
		{"start start stopped:1 stopped:0 start", "0 of 3 lanes done, 1 active, 0 merged; active 0~2; again 1"},
		{"start start stopped:1 stopped:0 start start start", "0 of 3 lanes done, 3 active, 0 merged; active 0~2 1~2 2"},
		{"start start start failed:1 revert", "0 of 3 lanes done, 1 waiting, 0 merged; asked 1; again 0 2"},
		{"start start start stopped:1 revert", "0 of 3 lanes done, 0 merged; again 0 1 2"},
		{"start start start done:1 done:2 lost:2 lost:1", "0 of 3 lanes done, 1 active, 0 merged; active 0; again 1 2"},
		// of another order, or repeated
		{"done:0 failed:1 stopped:2", "0 of 3 lanes done, 0 merged"},
		{"conflict:0", "0 of 3 lanes done, 0 merged"},
		{"merge:0", "0 of 3 lanes done, 0 merged"},
		{"skip:0", "0 of 3 lanes done, 0 merged"},
		{"begin:2", "0 of 3 lanes done, 0 merged"},
		{"start begin:0", "0 of 3 lanes done, 1 active, 0 merged; active 0"},
		{"start conflict:0", "0 of 3 lanes done, 1 active, 0 merged; active 0"},
		{"start done:0 done:0", "1 of 3 lanes done, 0 merged; next 0"},
		{"start done:0 begin:0", "1 of 3 lanes done, 0 merged; next 0"},
		{"start done:0 conflict:0 conflict:0", "0 of 3 lanes done, 1 waiting, 0 merged; asked 0"},
		{"start done:0 merge:0 merge:0", "1 of 3 lanes done, 1 merged"},
		{"start done:0 merge:0 begin:0", "1 of 3 lanes done, 1 merged"},
		{"start skip:0 skip:0", "0 of 3 lanes done, 1 failed, 1 merged"},
	} {
		t.Run(row[0], func(t *testing.T) { require.Equal(t, row[1], inLanes(t, 3).play(row[0]).shown()) })
	}
	s := inLanes(t, 1)
	require.Equal(t, &Lanes{Stage: 1, Count: 1, Digest: "list", Base: named("base")}, s.Lanes)
	require.Equal(t, "with 0", s.play("start done:0 merge:0").Tree.Digest)
	s.add(KindPhaseEnd, "work", PhaseEnd{Key: "work", Next: &Place{Stage: 2, Round: 1}})
	require.Equal(t, "no lanes", s.Lanes.text())
	require.Equal(t, ", 1 lane", s.LaneTotals.text())
	require.Equal(t, ", 4 lanes, 2 failed", (&Lanes{Count: 3, Failed: 2}).leave(s.LaneTotals).text())
}

// Any index is folded, in a run with and without lanes.
func TestOddIndexesOfLanes(t *testing.T) {
	without, with := newStream(t, State{}).State, inLanes(t, 3).play("start start start done:0 failed:1").State
	for _, i := range []int{-9, -1, 0, 1, 2, 3, 1 << 20} {
		for name, p := range map[string]any{
			"start": ChildStart{LanePlace: LanePlace{Index: i}}, "merge": ChildMerged{Index: i}, "skip": ChildSkip{Index: i},
			"conflict": ChildEnd{LanePlace: LanePlace{Index: i}, Outcome: ChildConflict},
			"end":      ChildEnd{LanePlace: LanePlace{Index: i}, Outcome: "another", Tree: named("t")},
		} {
			t.Run(fmt.Sprint(name, " ", i), func(t *testing.T) {
				raw, err := Payload(p)
				require.NoError(t, err)
				ev := Event{Seq: 50, Kind: KindWith(t, p), Payload: raw}
				require.NotPanics(t, func() {
					require.Nil(t, Apply(without, ev).Lanes)
					require.Less(t, size(t, Apply(with, ev)), size(t, with)+2048)
				})
			})
		}
	}
}

func TestVerdictsOfMergedLanes(t *testing.T) {
	yes, no := true, false
	for name, row := range map[string]struct {
		lanes []*bool
		edits bool // an operator changes the work before the last merge
		want  *bool
	}{
		"all approve":       {[]*bool{&yes, &yes}, false, &yes},
		"the first does":    {[]*bool{&yes, &no}, false, &no},
		"the last does":     {[]*bool{&no, &yes}, false, &no},
		"none has any":      {[]*bool{nil, nil}, false, nil},
		"the last has none": {[]*bool{&yes, nil}, false, nil},
		"an operator edits": {[]*bool{&yes, &yes}, true, &no},
	} {
		s := inLanes(t, 3)
		for i, approved := range row.lanes {
			if s.play(fmt.Sprintf("start done:%d", i)); row.edits && i == len(row.lanes)-1 {
				s.add(KindWorkspaceUpdated, "work", WorkspaceUpdated{Cause: CauseEdited, Tree: *named("edited")})
			}
			s.add(KindChildMerged, "work", ChildMerged{Index: i, Verdict: "word", Approved: approved})
		}
		require.Equal(t, row.want, s.Approved, name)
		require.Equal(t, row.want != nil, s.Verdict == "word" && s.CurrentVerdict() != nil, name)
	}
}

func laneCost(usd float64, calls int, role string) ChildCost {
	spent := Totals{Calls: calls, USD: usd, Unknown: 1, Tokens: Tokens{Input: 10}}
	return ChildCost{Spent: spent, ByRole: []Named{{role, spent}}, Calls: calls - 1, Tokens: 10,
		Means: []Mean{{Role: role, Calls: calls, USD: usd}}}
}

func TestCostsOfLanes(t *testing.T) {
	s := inLanes(t, 3).play("start start start")
	before := s.State
	s.SunkUSD = 0.5
	s.add(KindPassEnd, "plan", PassEnd{Pass: Pass{Role: "worker"}, Spend: Spend{USD: 4, Known: CostExact}})
	s.add(KindChildEnded, "work", ChildEnd{Outcome: ChildDone, Cost: laneCost(1, 3, "worker")})
	s.add(KindChildEnded, "work", ChildEnd{LanePlace: s.began[1], Outcome: ChildStopped, Cost: laneCost(2, 2, "reviewer")})
	s.add(KindChildSkipped, "work", ChildSkip{Index: 2, Cost: laneCost(0.25, 1, "worker")})
	total := Totals{Calls: 7, USD: 7.25, Unknown: 3, Known: CostAtLeast, Tokens: Tokens{Input: 30}}
	require.Equal(t, total, s.Spent)
	require.InDelta(t, 7.75, s.Total(), 1e-9)
	require.Equal(t, []int64{4, 30}, []int64{int64(s.Used.Calls), s.Used.Tokens})
	rows := map[string]float64{}
	for _, r := range append(s.ByRole, s.ByStage...) {
		rows[r.Name] = r.USD
	}
	require.Equal(t, map[string]float64{"worker": 5.25, "reviewer": 2, "plan": 4, "work": 3.25}, rows)
	require.Equal(t, []Mean{{Role: "worker", Calls: 3, USD: 1}, {Role: "reviewer", Calls: 2, USD: 2}}, s.Means, "of the most calls")
	total.USD = 7.75
	require.Equal(t, ChildCost{Spent: total, ByRole: s.ByRole, Calls: 4, Tokens: 30, Means: s.Means}, *s.ChildCost())
	require.InDelta(t, 7.75, Checkpoint{State: before}.Reverted(s.State).Total(), 1e-9)

	raw, err := Payload(ChildEnd{Cost: laneCost(1, 1, "worker")})
	require.NoError(t, err)
	f, ev := NewFold(before, History{}), Event{Seq: 50, Kind: KindChildEnded, Payload: raw}.Decoded()
	f.Apply(ev)
	f.Apply(Event{Kind: KindPassEnd, Payload: json.RawMessage(`{"role":"worker","spend":{"usd":1}}`)})
	require.Equal(t, laneCost(1, 1, "worker"), PayloadOf[ChildEnd](ev).Cost, "what follows an event does not change it")
}

// A question beside the work leaves the status as it is, until nothing else is left to do. Its decision is kept until
// the lane that it is about begins again.
func TestQuestionBesideTheWork(t *testing.T) {
	s := inLanes(t, 3).play("start start").add(KindGateRequested, "work", QuestionRequested{Kind: QuestionGate, ID: "q",
		Phase: "work", Round: 1, Trigger: TriggerCheckFailed, Of: LaneFailed, Beside: true, Actions: []string{ActionRetry}})
	require.Equal(t, Running, s.Status)
	q, _ := s.Asks()
	require.Equal(t, LaneFailed, q.Of)
	require.Contains(t, s.Available(Running), Decide)
	require.Equal(t, Running, s.add(KindQuestionAwaited, "work", QuestionAwaited{ID: "another"}).Status)
	require.Equal(t, AwaitingGateDecision, s.add(KindQuestionAwaited, "work", QuestionAwaited{ID: "q"}).Status)
	lanes := laneStream{s, map[int]LanePlace{}}
	s.add(KindGateDecided, "work", QuestionDecided{Kind: QuestionGate, ID: "q", Action: ActionRetry})
	require.NotNil(t, lanes.play("done:1 start").Decided)
	require.Nil(t, lanes.play("failed:0 again:0").Decided)
	s.Decided = &Decided{Kind: QuestionGate, Phase: "plan", Round: 1}
	require.NotNil(t, lanes.play("stopped:0 start").Decided, "it is about another stage")
}

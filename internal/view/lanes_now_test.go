package view_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// The projected cost counts the calls that lanes still make; the share of stages counts the lanes that have ended.
func TestFiguresCountLanes(t *testing.T) {
	steps := []pipeline.PlanStep{{Kind: pipeline.KindRole, Role: "implementer"}, {Kind: pipeline.KindRun},
		{Kind: pipeline.KindTogether, Members: []string{"a", "b"}}}
	plan := &pipeline.Plan{Stages: []pipeline.PlanStage{{Kind: pipeline.StageLanes,
		Rounds: []pipeline.PlanRound{{Steps: steps}}}, {}}}
	lanes := &run.Lanes{Count: 10, Begun: 4, Done: 1, Failed: 1}
	s := view.Source{Plan: plan, State: run.State{Status: run.Running, Wording: run.WordingStages, Lanes: lanes},
		Lanes: []rundir.Lane{{Lane: lane(2, ""), Live: &run.State{Next: run.Place{Step: 2}}}, {Lane: lane(3, "")}},
		Records: rundir.PipelineState{Cost: rundir.CostTracker{
			ByRole: map[string]rundir.RoleCost{"implementer": {PassCount: 10}}}}}
	s.State.Spent.USD = 5
	require.InDelta(t, 5+0.5*(6*4+2+4), *view.Projected(s), 1e-9, "six lanes of four calls, and those of two lanes")
	percent := func(stage int) int {
		at := s
		at.State.Next.Stage = stage
		return view.Of(at, noon).Progress.Percent
	}
	require.Equal(t, []int{10, 60}, []int{percent(0), percent(1)})

	lanes.Again = []run.Lane{lane(0, "")}
	require.InDelta(t, 5+0.5*(7*4+2+4), *view.Projected(s), 1e-9, "a lane that begins again")
	s.Lanes[1] = rundir.Lane{Lane: lane(3, run.ChildFailed), Live: &run.State{Next: run.Place{Step: 2},
		Spent: run.Totals{Calls: 2, USD: 9}}}
	require.InDelta(t, 5+0.5*(7*4+2+4), *view.Projected(s), 1e-9, "one that an operator may repeat")
	s.Lanes[0].Live.Next, s.Lanes[0].Live.Spent = run.Place{Stage: 1}, run.Totals{Calls: 4, USD: 3}
	require.InDelta(t, 5+3+0.5*(7*4+4), *view.Projected(s), 1e-9, "one that ends, whose cost is not counted yet")
	s.State.Lanes, s.Lanes = nil, nil
	require.Equal(t, 50, percent(1))
	require.InDelta(t, 5, *view.Projected(s), 1e-9)
}

func lane(index int, outcome run.ChildOutcome) run.Lane {
	return run.Lane{LanePlace: run.LanePlace{Index: index, Key: "key", Name: "item.go"}, Outcome: outcome}
}

// What lanes do is in their own records: the calls that run, and what they wait for.
func TestLanesShowTheirOwnRecords(t *testing.T) {
	working := run.State{Status: run.Running, Next: run.Place{Step: 1}, InFlight: []run.InFlightCall{
		{Step: "002", Role: "writer", Call: "c", Attempt: 2, StartedAt: run.Time(noon.Add(-time.Minute))}}}
	asking := run.State{Status: run.AwaitingGateDecision,
		Questions: []run.Question{{Kind: run.QuestionGate, ID: "q", Text: "The check failed."}}}
	paused, ended := working, working
	paused.Status, paused.Reason, paused.InFlight = run.Paused, run.PassFailed, nil
	ended.Status, ended.InFlight = run.Failed, nil
	conflict := lane(5, run.ChildConflict)
	conflict.Reason, conflict.Suffix = "They conflict.", "~2"
	s := view.Source{Plan: loops(), State: run.State{RunID: "r", Status: run.Running, Lanes: &run.Lanes{Count: 9},
		Stages: []run.StageRef{{Name: "write"}}}, Lanes: []rundir.Lane{
		{Lane: lane(0, ""), Live: &working}, {Lane: lane(1, ""), Live: &asking}, {Lane: lane(2, ""), Live: &paused},
		{Lane: lane(3, "")}, {Lane: lane(4, ""), Live: &ended}, {Lane: conflict, Live: &working}}}
	f := view.Of(s, noon)
	var does []string
	for i, l := range f.Lanes {
		require.Equal(t, i+1, l.Number)
		require.Equal(t, "item.go", l.Name)
		does = append(does, l.Does)
		require.Equal(t, i == 1 || i == 2 || i == 5, l.Waiting, l.Does)
	}
	require.Equal(t, []string{"step 2 of 3, writer, attempt 2", "waits for an operator: The check failed.",
		"paused: pass-failed", "starts", "ends", "waits for an operator: They conflict."}, does)
	require.Equal(t, time.Minute, f.Lanes[0].Elapsed)
	require.Equal(t, "r.1.key", f.Lanes[0].RunID)
	require.Equal(t, "lanes/write/key", f.Lanes[0].Directory)
	require.Equal(t, "r.1.key~2", f.Lanes[5].RunID)
	require.Equal(t, "lanes/write/key~2", f.Lanes[5].Directory)
	require.Len(t, f.InFlight, 1)
	require.Equal(t, "writer item.go", f.InFlight[0].Name())
	require.Equal(t, "c", f.InFlight[0].Call)
	require.Equal(t, time.Minute, f.InFlight[0].Elapsed)
	require.Equal(t, f.InFlight, view.InFlight(s.State, s.Plan, noon, s.Lanes...))
}

// TestSettledHasLanes: how long a lane took, its cost, and why it failed.
func TestSettledHasLanes(t *testing.T) {
	var all []run.Event
	add := func(at int, kind run.Kind, payload any) {
		raw, err := run.Payload(payload)
		require.NoError(t, err)
		all = append(all, run.Event{Seq: int64(len(all) + 1), TS: run.Time(noon.Add(time.Duration(at) * time.Second)),
			Kind: kind, Payload: raw})
	}
	place := lane(0, "").LanePlace
	add(0, run.KindChildStarted, run.ChildStart{RunID: "r.1.a", LanePlace: place})
	add(0, run.KindChildStarted, run.ChildStart{RunID: "r.1.b", LanePlace: place})
	add(7, run.KindChildEnded, run.ChildEnd{RunID: "r.1.a", LanePlace: place, Outcome: run.ChildDone,
		Cost: run.ChildCost{Spent: run.Totals{Calls: 2, USD: 0.5, Unknown: 1}}})
	add(8, run.KindChildEnded, run.ChildEnd{RunID: "r.1.b", LanePlace: place, Outcome: run.ChildFailed, Reason: "broken"})
	add(9, run.KindChildEnded, run.ChildEnd{RunID: "r.1.b", LanePlace: place, Outcome: run.ChildStopped})
	got := view.Of(view.Source{Recent: all}, noon).Settled
	lane := view.Pass{Seq: 3, Step: "r.1.a", Role: "lane", Item: "item.go", CompletedAt: all[2].TS, DurationMS: 7000,
		USD: 0.5, Unknown: 1, Outcome: run.CategoryOK}
	other := view.Pass{Seq: 4, Step: "r.1.b", Role: "lane", Item: "item.go", CompletedAt: all[3].TS, DurationMS: 8000,
		Outcome: "failed"}
	require.Equal(t, []view.Settled{{Pass: lane}, {Pass: other, Failed: true, Message: "broken"}}, got)
}

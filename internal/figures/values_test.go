package figures_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/figures"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestSettledHasEachValue reads events in which no two values are equal.
func TestSettledHasEachValue(t *testing.T) {
	event := func(seq int64, kind run.Kind, payload any) run.Event {
		raw, err := run.Payload(payload)
		require.NoError(t, err)
		return run.Event{Seq: seq, TS: "ts", Kind: kind, Payload: raw}
	}
	score, changed := 2.5, 4
	p := run.Pass{Step: "s", Number: 3, Role: "r", Round: 2}
	other := run.Pass{Step: "other"}
	end := run.PassEnd{Pass: p, Outcome: run.CategoryAgentTimeout, DurationMS: 1500, Verdict: "v", Value: "x", ID: "tests",
		Score: &score, Validation: run.Validation{Passed: true}, Spend: run.Spend{USD: 0.5, Known: run.CostAtLeast},
		Tampered: &run.Tampered{Count: 7}}
	covers := run.PassEnd{Pass: other, Outcome: run.CategoryOK, Spend: run.Spend{USD: 1, Known: run.CostExact, Covers: 2}}
	cost := run.Spend{USD: 0.25, Known: run.CostUnknown}
	got := figures.Of(figures.Source{State: run.State{Wording: run.WordingStages}, Recent: []run.Event{
		event(1, run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "s", Changed: 1}),
		event(2, run.KindWorkspaceTampered, run.Tampered{Step: "s", Count: 1}),
		event(3, run.KindPassEnd, end),
		event(4, run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "s", Changed: 4}),
		event(5, run.KindPassEnd, covers),
		event(6, run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "s", Changed: 9}),
		event(7, run.KindWorkspaceTampered, run.Tampered{Step: "s", Count: 9}),
		event(8, run.KindWorkspaceTampered, run.Tampered{Step: "other", Count: 6}),
		event(9, run.KindPassAttempt, run.PassAttempt{Pass: p, Category: run.CategoryLost, Message: "its call continues"}),
		event(9, run.KindPassAttempt, run.PassAttempt{Pass: p, Category: run.CategoryAgentExit, Message: "m", DurationMS: 20,
			Spend: &cost}),
		event(10, run.KindPassStart, run.PassStart{Pass: p}),
	}}, noon).Settled
	require.Equal(t, []figures.Settled{
		{Seq: 3, TS: "ts", Pass: p, Duration: 1500 * time.Millisecond, USD: 0.5, Unknown: 1, Passed: true,
			Outcome: run.CategoryAgentTimeout.In(run.WordingStages), Verdict: "v", Value: "x", As: "tests", Score: &score,
			Changed: &changed, Tampered: 7},
		{Seq: 5, TS: "ts", Pass: other, USD: 1, Outcome: run.CategoryOK, Tampered: 6},
		{Seq: 9, TS: "ts", Pass: p, Duration: 20 * time.Millisecond, USD: 0.25, Unknown: 1,
			Outcome: run.CategoryAgentExit.In(run.WordingStages), Failed: true, Message: "m"},
	}, got)
}

// loops is a plan with a stage of sets, a loop with all kinds of steps, and a last stage.
func loops() *pipeline.Plan {
	p := &pipeline.Plan{Stages: []pipeline.PlanStage{
		{Title: "Write", Kind: pipeline.StageEach, Rounds: []pipeline.PlanRound{
			{Set: "S1", Theme: "one", Steps: []pipeline.PlanStep{{Key: "001", Kind: pipeline.KindRole, Role: "writer", Number: 1,
				InRound: 1, Order: "A", OrderLabel: "Base"}, {Key: "002", Kind: pipeline.KindRun, ID: "tests", Run: "make test",
				InRound: 2}, {Key: "003", Kind: pipeline.KindRole, Role: "writer", Number: 2, InRound: 3}}},
			{Set: "S2", Theme: "two", Steps: []pipeline.PlanStep{{Key: "004", Kind: pipeline.KindRole, Role: "writer",
				Number: 3}}},
			{Steps: []pipeline.PlanStep{{Key: "005", Number: 4}}}, {Set: "S3", Steps: []pipeline.PlanStep{{Key: "006"}}},
		}},
		{Title: "Audit", Kind: pipeline.StageRepeat, Repeat: &pipeline.Repeat{Max: 3},
			Rounds: []pipeline.PlanRound{{Steps: []pipeline.PlanStep{
				{Key: "a/1", Kind: pipeline.KindScreenshots}, {Key: "a/2", Kind: pipeline.KindTogether, Members: []string{"judge-x",
					"judge-y"}}, {Key: "a/3", Kind: pipeline.KindRole, Role: "weaver"}, {Key: "a/4", Kind: pipeline.KindAsk},
				{Key: "a/5", Kind: pipeline.KindRole, Role: "fixer"}, {Key: "a/6", Kind: pipeline.KindRun, ID: "tests",
					Run: "make"},
			}}}},
		{Title: "Close", Kind: pipeline.StageOnce, Rounds: []pipeline.PlanRound{{Steps: []pipeline.PlanStep{{Key: "c"}}}}},
	}}
	p.Roles = []pipeline.Role{{Name: "writer", Gives: pipeline.GivesArtifact},
		{Name: "fixer", Gives: pipeline.GivesArtifact},
		{Name: "weaver", Score: &pipeline.Score{Name: "PA", Range: []float64{0, 4}}}}
	return p
}

func TestProgressOfEachStep(t *testing.T) {
	s := figures.Source{Plan: loops(), Records: rundir.PipelineState{TotalCorpusPasses: 4, LastCompletedCorpusPass: 1}}
	for _, row := range []struct {
		at   run.Place
		want figures.Progress
	}{
		{run.Place{Stage: 0, Round: 1}, figures.Progress{Stage: "Write", Set: "S1", Theme: "one", InSet: 1, OfSet: 3,
			Order:      "A",
			OrderLabel: "Base", Role: "writer"}},
		{run.Place{Stage: 0, Round: 1, Step: 1}, figures.Progress{Stage: "Write", Set: "S1", Theme: "one", InSet: 2, OfSet: 3,
			Role: pipeline.CommandRole}},
		{run.Place{Stage: 0, Round: 1, Step: 3}, figures.Progress{Stage: "Write", Set: "S1", Theme: "one"}},
		{run.Place{Stage: 1, Round: 2, Step: 1}, figures.Progress{Stage: "Audit", OfSet: 6, Role: "judge-x, judge-y",
			Round: 2}},
		{run.Place{Stage: 1, Round: 2, Step: 0}, figures.Progress{Stage: "Audit", OfSet: 6, Role: "screenshots", Round: 2}},
		{run.Place{Stage: 3, Round: 1}, figures.Progress{}}, {run.Place{Stage: -1, Round: 1}, figures.Progress{}},
		{run.Place{Stage: 0, Round: 1, Step: -1}, figures.Progress{Stage: "Write", Set: "S1", Theme: "one"}},
	} {
		s.State.Next = row.at
		row.want.Done, row.want.Total, row.want.Percent = 1, 4, 25
		if row.want.Round > 0 {
			row.want.Max = 3
		}
		require.Equal(t, row.want, figures.Of(s, noon).Progress, "%+v", row.at)
	}
	s.Records.LastCompletedCorpusPass = 2
	sets := figures.Of(s, noon).Sets
	require.Equal(t, []figures.Set{{ID: "S1", Theme: "one", Done: 2, Total: 2}, {ID: "S2", Theme: "two", Total: 1}}, sets)
	require.Equal(t, []int{0, 3, 7, 8}, []int{figures.Set{}.Steps(8), figures.Set{Done: 3, Total: 8}.Steps(8),
		figures.Set{Done: 6, Total: 7}.Steps(9), figures.Set{Done: 2, Total: 2}.Steps(8)})
}

func TestStatesOfStages(t *testing.T) {
	s := figures.Source{Plan: loops(), State: run.State{Status: run.Running, Rounds: 3, Unmet: "score", Phase: "audit"}}
	at := func(stage, round int) []figures.Stage {
		s.State.Next = run.Place{Stage: stage, Round: round}
		return figures.Of(s, noon).Stages
	}
	require.Equal(t, []figures.Stage{{Title: "Write", Rounds: 1, Max: 4, Current: true},
		{Title: "Audit", Max: 3, Repeats: true}, {Title: "Close", Max: 1}}, at(0, 2))
	require.Equal(t, []figures.Stage{{Title: "Write", Rounds: 4, Max: 4, Finished: true},
		{Title: "Audit", Rounds: 4, Max: 3, Repeats: true, Current: true}, {Title: "Close", Max: 1}}, at(1, 5))
	require.Equal(t, []figures.Stage{{Title: "Write", Rounds: 4, Max: 4, Finished: true},
		{Title: "Audit", Rounds: 3, Max: 3, Repeats: true, Finished: true, Unmet: "score"},
		{Title: "Close", Max: 1, Current: true}}, at(2, 0))
	s.State.Status = run.Done
	require.Equal(t, figures.Stage{Title: "Close", Rounds: 1, Max: 1, Finished: true}, at(2, 1)[2])
	s.State.Status = run.AwaitingPhaseHandoff
	require.Equal(t, "round 3 of at most 3", at(1, 3)[1].RoundText(), "the question after it is open")
	require.Empty(t, at(1, 3)[0].RoundText())
	require.Nil(t, figures.Of(figures.Source{}, noon).Stages)
	require.Nil(t, figures.Of(figures.Source{}, noon).Sets)
}

func TestCallsInFlight(t *testing.T) {
	s := run.State{Status: run.Running, Next: run.Place{Stage: 0, Round: 1, Step: 1}, InFlight: []run.InFlightCall{
		{Step: "002", Member: "m", Role: "command", Call: "c", Attempt: 2, StartedAt: run.Time(noon.Add(-time.Minute))},
		{Step: "001", Role: "writer", StartedAt: "soon"}, {Step: "002", StartedAt: run.Time(noon.Add(time.Minute))}}}
	got := figures.InFlight(s, loops(), noon)
	require.Equal(t, "002", got[0].Step)
	require.Equal(t, "m", got[0].Member)
	require.Equal(t, "command", got[0].Role)
	require.Equal(t, "c", got[0].Call)
	require.Equal(t, 2, got[0].Attempt)
	require.Equal(t, "S1", got[0].Set)
	require.Equal(t, "make test", got[0].Command)
	require.Equal(t, noon.Add(-time.Minute), got[0].Since)
	require.Equal(t, time.Minute, got[0].Elapsed)
	require.Equal(t, figures.InFlightCall{Step: "001", Role: "writer"}, got[1])
	require.Zero(t, got[2].Elapsed)
	require.Equal(t, "make test", got[2].Command)
	require.Empty(t, figures.InFlight(s, nil, noon)[0].Command)
	s.Status = run.Paused
	require.Nil(t, figures.InFlight(s, loops(), noon))
}

// TestStepsOfCycles: an open cycle stands where the run does, a closed one has what its record has.
func TestStepsOfCycles(t *testing.T) {
	score := func(v float64) *float64 { return &v }
	record := rundir.PACycleRecord{CycleNumber: 2, ScreenshotCount: 1, Auditors: []rundir.AuditorRecord{{ID: "judge-x",
		Score: score(1)}, {ID: "judge-y"}}, Weaver: &rundir.ReportRecord{}, PAScore: score(2)}
	s := figures.Source{Plan: loops(), State: run.State{Status: run.Running, Next: run.Place{Stage: 1, Round: 2, Step: 2}}}
	s.Records = rundir.PipelineState{MaxPACycles: 3, OpenCycle: &record, PAScoreThreshold: score(3),
		PACycleRecords: map[string]rundir.PACycleRecord{"1": {CycleNumber: 1},
			"2": {CycleNumber: 2, PAScore: score(9)}}}
	states := func() (all []figures.StepState) {
		for _, step := range figures.Of(s, noon).Cycle.Steps {
			all = append(all, step.At)
		}
		return all
	}
	const done, runs, waits, skipped = figures.StepDone, figures.StepRunning, figures.StepWaiting, figures.StepSkipped
	require.Equal(t, []figures.StepState{done, done, runs, waits, waits, waits}, states())
	s.State.Status = run.Paused
	require.Equal(t, []figures.StepState{done, done, waits, waits, waits, waits}, states())
	s.State.Next.Round = 3
	require.Equal(t, []figures.StepState{done, done, done, done, skipped, done}, states())
	s.State.Next.Round, s.State.Status = 2, run.Done
	require.Equal(t, []figures.StepState{done, done, done, done, skipped, done}, states())
	s.State.Next.Stage = 2
	record.ScreenshotCount, record.Auditors, record.Weaver, record.Refine = 0, nil, nil, &rundir.RefineRecord{}
	s.Records.OpenCycle = &record
	require.Equal(t, []figures.StepState{skipped, skipped, skipped, skipped, done, skipped}, states())

	record.Auditors = []rundir.AuditorRecord{{ID: "judge-x", Score: score(1)}, {ID: "judge-y"}}
	c := figures.Of(s, noon).Cycle
	require.Equal(t, "Audit", c.Stage)
	require.Equal(t, "PA", c.Name)
	require.Equal(t, 4.0, c.MaxScore)
	require.Equal(t, "weaver", c.Judge)
	require.Equal(t, 2, c.Number)
	require.Equal(t, 3, c.Max)
	require.True(t, c.Open)
	require.Nil(t, c.Previous)
	require.Equal(t, 2.0, *c.Score)
	require.Equal(t, 3.0, *c.Target)
	require.False(t, c.Met)
	require.Equal(t, []figures.Auditor{{Name: "x", Score: score(1)}, {Name: "y"}}, c.Auditors)
	var names []string
	for _, step := range c.Steps {
		names = append(names, step.Name)
	}
	require.Equal(t, []string{"Screenshots", "Judges", "Weaver", "Ask", "Fixer", "Tests"}, names)
	require.Equal(t, []figures.Point{{Cycle: 2, Score: 2}}, figures.Trend(s.Records))
	record.Auditors = []rundir.AuditorRecord{{ID: "judge-x"}}
	require.Equal(t, "judge-x", figures.Of(s, noon).Cycle.Auditors[0].Name, "a single name has no common part")
	record.Auditors = []rundir.AuditorRecord{{ID: "a-x"}, {ID: "b-x"}}
	require.Equal(t, "a-x", figures.Of(s, noon).Cycle.Auditors[0].Name)
	s.Plan = nil
	require.Empty(t, figures.Of(s, noon).Cycle.Stage)
}

func TestCostsOfRuns(t *testing.T) {
	s := figures.Source{Plan: loops(), State: run.State{Status: run.Running, Next: run.Place{Stage: 0, Round: 1},
		Spent: run.Totals{
			EstimatedUSD: 0.5}, ByRole: []run.Named{{Name: "b"}, {Name: "gone"}, {Name: "a"}}}}
	s.Records = rundir.PipelineState{SunkCostUSD: 1, TotalCorpusPasses: 4, LastCompletedCorpusPass: 2, MaxPACycles: 2,
		CompletedPACycles: 1, Cost: rundir.CostTracker{TotalEstimatedCostUSD: 6, BudgetHardCapUSD: 20,
			BudgetWarningThresholdUSD: 15, ByRole: map[string]rundir.RoleCost{"a": {CostUSD: 2, PassCount: 1},
				"b": {CostUSD: 4, PassCount: 2, UnknownCalls: 3}}}}
	mean, projected := 2.0, 7.0+(2+5)*2
	require.Equal(t, figures.Cost{Total: 7, Sunk: 1, Estimated: 0.5, Budget: 20, Warn: 15, Percent: 35, Calls: 3,
		Mean:      &mean,
		Projected: &projected, Roles: []figures.Role{{Name: "b", USD: 4, Calls: 2, Unknown: 3},
			{Name: "a", USD: 2, Calls: 1}}},
		figures.Of(s, noon).Cost, "two passes and a cycle of five calls may still come")
	s.Records.Cost.BudgetHardCapUSD = 1000
	require.Equal(t, 1, figures.Of(s, noon).Cost.Percent)
	projects := s
	projects.State.Projects = []run.ProjectState{{USD: 3, Unknown: 1}}
	c := figures.Of(projects, noon).Cost
	require.Equal(t, 10.0, c.Total, "the projects of a run are part of its cost")
	require.Equal(t, 1, c.Unknown)
	s.State.SunkUnknown = 2
	c = figures.Of(s, noon).Cost
	require.Equal(t, 2, c.Unknown)
	require.Nil(t, c.Mean)
	require.Nil(t, c.Projected)
	s.Records.CompletedPACycles, s.Records.LastCompletedCorpusPass, s.State.Next.Stage = 9, 9, 1
	require.Equal(t, 7.0, *figures.Projected(s))
	s.Plan, s.Records.CompletedPACycles = nil, 1
	require.Equal(t, 17.0, *figures.Projected(s), "five calls of a cycle without a plan")
	s.State.DurationsMS = []int64{1000, 1000, 1000}
	s.State.Wording = run.WordingStages
	require.Equal(t, 4*time.Second, *figures.Remaining(s), "four steps of a cycle without a plan")
	s.Plan, s.State.Next = loops(), run.Place{Stage: 1, Round: 1}
	require.Equal(t, 5*time.Second, *figures.Remaining(s), "five steps: a question costs no time")
	require.Equal(t, "$5.41", figures.USD(5.412))
}

func TestQualityOfRuns(t *testing.T) {
	s := figures.Source{State: run.State{Passes: run.PassCount{Unmodified: 1, Retries: 2},
		Notes: []run.Notes{{Name: "a", Entries: 9},
			{Name: "b", Entries: 9}, {Name: "c", Entries: 5}}}}
	s.Records = rundir.PipelineState{ConvictionEntryCount: 3, DiscoveryEntryCount: 4,
		PassRecords: map[string]rundir.PassRecord{
			"1": {ValidationPassed: true, ValidationDetails: run.Validation{Warnings: []string{"x"}}},
			"2": {ValidationDetails: run.Validation{Warnings: []string{"y", "z"}}}},
		ErrorHistory: []rundir.ErrorRecord{{Recovered: true}, {}, {}}}
	require.Equal(t, figures.Quality{Passed: 1, Judged: 2, Warnings: 3, Notes: []figures.Note{{Name: "a", Entries: 3},
		{Name: "b", Entries: 4}, {Name: "c", Entries: 5}}, Unmodified: 1, Retries: 2, Recovered: 1, Unrecovered: 2},
		figures.Of(s, noon).Quality)
}

func TestLastPasses(t *testing.T) {
	s := figures.Source{}
	s.Records.PassRecords = map[string]rundir.PassRecord{"2": {GlobalPassNumber: 2}, "9": {GlobalPassNumber: 9},
		"10": {GlobalPassNumber: 10, SubsetID: "S1", SubsetPassNumber: 3, Rotation: "B", AgentRole: "r", DurationMS: 1500,
			ValidationPassed: true, Outcome: "ok", RetryCount: 4, Tokens: rundir.PassTokens{EstimatedCostUSD: 0.5,
				UnknownCalls: 1}},
		"11": {GlobalPassNumber: 11}}
	s.Records.Checkpoints = []rundir.CheckpointRecord{{ID: "cp-S1", AtPassNumber: 10},
		{ID: "cp-1", AtPassNumber: 10, AtPACycle: 1},
		{ID: "cp-2", AtPassNumber: 9}}
	require.Equal(t, []figures.Pass{{Number: 9, Checkpoint: "cp-2"},
		{Number: 10, Set: "S1", InSet: 3, Order: "B", Role: "r",
			Duration: 1500 * time.Millisecond, USD: 0.5, Unknown: 1, Passed: true, Outcome: "ok", Retries: 4,
			Checkpoint: "cp-S1"},
		{Number: 11}}, figures.Of(s, noon).Last)
}

func TestElapsedTime(t *testing.T) {
	s := figures.Source{Pauses: []figures.Pause{{From: noon.Add(-10 * time.Minute)}}}
	require.Zero(t, figures.Of(s, noon).Timing.Elapsed, "it has not started")
	s.Records.StartedAt = run.Time(noon.Add(-time.Hour))
	f := figures.Of(s, noon)
	require.Equal(t, []time.Duration{50 * time.Minute, 10 * time.Minute},
		[]time.Duration{f.Timing.Elapsed, f.Timing.Paused})
	require.Equal(t, 15*time.Minute, f.Tick(s, noon.Add(5*time.Minute)).Timing.Paused)
	over := "later"
	s.Records.CompletedAt = &over
	require.Equal(t, 50*time.Minute, figures.Of(s, noon).Timing.Elapsed)
	require.Zero(t, figures.Of(s, noon.Add(-2*time.Hour)).Timing.Elapsed)
	at := func(clock string) rundir.DecisionRow {
		return rundir.DecisionRow{TS: "2026-02-28T" + clock + ":00.000Z"}
	}
	row := func(clock, decision string) rundir.DecisionRow { r := at(clock); r.Decision = decision; return r }
	moment := func(clock string) time.Time {
		m, err := time.Parse(run.TimeFormat, at(clock).TS)
		require.NoError(t, err)
		return m
	}
	require.Equal(t, []figures.Pause{{From: moment("10:00"), To: moment("10:30")},
		{From: moment("10:40"), To: moment("11:00")},
		{From: moment("12:00"), To: moment("12:10")}, {From: moment("12:20")}},
		figures.Pauses([]rundir.DecisionRow{row("09:00", "resume"), row("10:00", "wait-for-limit"), row("10:10", "ask"),
			{TS: "bad", Decision: "resume"}, row("10:30", "end-wait-for-limit"), row("10:40", "accept-output"),
			row("11:00", "resume"), row("11:10", "execute-pass"), row("12:00", "ask"), row("12:10", "decide-continue"),
			row("12:20", "end-pipeline"), row("12:30", "pause-pipeline")}), "the first resume follows nothing")
}

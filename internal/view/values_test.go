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

// TestSettledHasEachValue reads events in which no two values are equal.
func TestSettledHasEachValue(t *testing.T) {
	event := func(seq int64, kind run.Kind, payload any) run.Event {
		raw, err := run.Payload(payload)
		require.NoError(t, err)
		return run.Event{Seq: seq, TS: "ts", Kind: kind, Payload: raw}
	}
	score := 2.5
	p := run.Pass{Step: "s", Number: 3, Role: "r", Round: 2}
	other := run.Pass{Step: "other"}
	end := run.PassEnd{Pass: p, Outcome: run.CategoryAgentTimeout, DurationMS: 1500, Verdict: "v", Value: "x", ID: "tests",
		Score: &score, Validation: run.Validation{Passed: true}, Spend: run.Spend{USD: 0.5, Known: run.CostAtLeast},
		Tampered: &run.Tampered{Count: 7}}
	covers := run.PassEnd{Pass: other, Outcome: run.CategoryOK, Spend: run.Spend{USD: 1, Known: run.CostExact, Covers: 2}}
	cost := run.Spend{USD: 0.25, Known: run.CostUnknown}
	got := view.Of(view.Source{State: run.State{Wording: run.WordingStages}, Recent: []run.Event{
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
	pass := func(seq int64, p run.Pass, outcome run.Category) view.Pass {
		return view.Pass{Seq: seq, Step: p.Step, Number: p.Number, Role: p.Role, Round: p.Round,
			Outcome: outcome.In(run.WordingStages), CostKnown: run.CostExact, Prompt: rundir.PromptFile(p),
			Frames: rundir.EnvelopeFile(p)}
	}
	first, second, failed := pass(3, p, run.CategoryAgentTimeout), pass(5, other, run.CategoryOK), pass(9, p,
		run.CategoryAgentExit)
	first.DurationMS, first.USD, first.Unknown, first.CostKnown = 1500, 0.5, 1, run.CostAtLeast
	first.Verdict, first.Value, first.Score, first.Changed = "v", "x", &score, 4
	first.Checks, first.Tampered, first.CostNote = end.Validation, end.Tampered, end.Spend.Why()
	second.USD, second.Tampered = 1, &run.Tampered{Step: "other", Count: 6}
	failed.DurationMS, failed.USD, failed.Unknown, failed.CostKnown = 20, 0.25, 1, run.CostAtLeast
	failed.CostNote = "that of an earlier attempt is not fully known"
	require.Equal(t, []view.Settled{{Pass: first, As: "tests"}, {Pass: second},
		{Pass: failed, Failed: true, Message: "m"}}, got)
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
	s := view.Source{Plan: loops(), State: run.State{Passes: run.PassCount{Total: 4, LastSettled: 1}}}
	for _, row := range []struct {
		at   run.Place
		want view.Progress
	}{
		{run.Place{Stage: 0, Round: 1}, view.Progress{Stage: "Write", Set: "S1", Theme: "one", InSet: 1, OfSet: 3,
			Order:      "A",
			OrderLabel: "Base", Role: "writer"}},
		{run.Place{Stage: 0, Round: 1, Step: 1}, view.Progress{Stage: "Write", Set: "S1", Theme: "one", InSet: 2, OfSet: 3,
			Role: pipeline.CommandRole}},
		{run.Place{Stage: 0, Round: 1, Step: 3}, view.Progress{Stage: "Write", Set: "S1", Theme: "one"}},
		{run.Place{Stage: 1, Round: 2, Step: 1}, view.Progress{Stage: "Audit", OfSet: 6, Role: "judge-x, judge-y",
			Round: 2}},
		{run.Place{Stage: 1, Round: 2, Step: 0}, view.Progress{Stage: "Audit", OfSet: 6, Role: "screenshots", Round: 2}},
		{run.Place{Stage: 3, Round: 1}, view.Progress{}}, {run.Place{Stage: -1, Round: 1}, view.Progress{}},
		{run.Place{Stage: 0, Round: 1, Step: -1}, view.Progress{Stage: "Write", Set: "S1", Theme: "one"}},
	} {
		s.State.Next = row.at
		row.want.Done, row.want.Total, row.want.Percent = 1, 4, 25
		if row.want.Round > 0 {
			row.want.Max = 3
		}
		require.Equal(t, row.want, view.Of(s, noon).Progress, "%+v", row.at)
	}
	s.State.Passes.LastSettled = 2
	sets := view.Of(s, noon).Sets
	require.Equal(t, []view.Set{{ID: "S1", Theme: "one", Done: 2, Total: 2}, {ID: "S2", Theme: "two", Total: 1}}, sets)
	require.Equal(t, []int{0, 3, 7, 8}, []int{view.Set{}.Steps(8), view.Set{Done: 3, Total: 8}.Steps(8),
		view.Set{Done: 6, Total: 7}.Steps(9), view.Set{Done: 2, Total: 2}.Steps(8)})
}

func TestStatesOfStages(t *testing.T) {
	s := view.Source{Plan: loops(), State: run.State{Status: run.Running, Rounds: 3, Unmet: "score", Phase: "audit"}}
	at := func(stage, round int) []view.Stage {
		s.State.Next = run.Place{Stage: stage, Round: round}
		return view.Of(s, noon).Stages
	}
	require.Equal(t, []view.Stage{{Title: "Write", Rounds: 1, Max: 4, Current: true},
		{Title: "Audit", Max: 3, Repeats: true}, {Title: "Close", Max: 1}}, at(0, 2))
	require.Equal(t, []view.Stage{{Title: "Write", Rounds: 4, Max: 4, Finished: true},
		{Title: "Audit", Rounds: 4, Max: 3, Repeats: true, Current: true}, {Title: "Close", Max: 1}}, at(1, 5))
	require.Equal(t, []view.Stage{{Title: "Write", Rounds: 4, Max: 4, Finished: true},
		{Title: "Audit", Rounds: 3, Max: 3, Repeats: true, Finished: true, Unmet: "score"},
		{Title: "Close", Max: 1, Current: true}}, at(2, 0))
	s.State.Status = run.Done
	require.Equal(t, view.Stage{Title: "Close", Rounds: 1, Max: 1, Finished: true}, at(2, 1)[2])
	s.State.Status = run.AwaitingPhaseHandoff
	require.Equal(t, "round 3 of at most 3", at(1, 3)[1].RoundText(), "the question after it is open")
	require.Empty(t, at(1, 3)[0].RoundText())
	require.Nil(t, view.Of(view.Source{}, noon).Stages)
	require.Nil(t, view.Of(view.Source{}, noon).Sets)
}

func TestCallsInFlight(t *testing.T) {
	s := run.State{Status: run.Running, Next: run.Place{Stage: 0, Round: 1, Step: 1}, InFlight: []run.InFlightCall{
		{Step: "002", Member: "m", Role: "command", Call: "c", Attempt: 2, StartedAt: run.Time(noon.Add(-time.Minute))},
		{Step: "001", Role: "writer", StartedAt: "soon"}, {Step: "002", StartedAt: run.Time(noon.Add(time.Minute))}}}
	got := view.InFlight(s, loops(), noon)
	require.Equal(t, "002", got[0].Step)
	require.Equal(t, "m", got[0].Member)
	require.Equal(t, "command", got[0].Role)
	require.Equal(t, "c", got[0].Call)
	require.Equal(t, 2, got[0].Attempt)
	require.Equal(t, "S1", got[0].Set)
	require.Equal(t, "make test", got[0].Command)
	require.Equal(t, noon.Add(-time.Minute), got[0].Since)
	require.Equal(t, time.Minute, got[0].Elapsed)
	require.Equal(t, view.InFlightCall{Step: "001", Role: "writer"}, got[1])
	require.Zero(t, got[2].Elapsed)
	require.Equal(t, "make test", got[2].Command)
	require.Empty(t, view.InFlight(s, nil, noon)[0].Command)
	s.Status = run.Paused
	require.Nil(t, view.InFlight(s, loops(), noon))
}

// TestStepsOfCycles: an open cycle stands where the run does, a closed one has what its record has.
func TestStepsOfCycles(t *testing.T) {
	score := func(v float64) *float64 { return &v }
	record := rundir.PACycleRecord{CycleNumber: 2, ScreenshotCount: 1, Auditors: []rundir.AuditorRecord{{ID: "judge-x",
		Score: score(1)}, {ID: "judge-y"}}, Weaver: &rundir.ReportRecord{}, PAScore: score(2)}
	s := view.Source{Plan: loops(), State: run.State{Status: run.Running, Next: run.Place{Stage: 1, Round: 2, Step: 2}}}
	s.Records = rundir.PipelineState{MaxPACycles: 3, OpenCycle: &record, PAScoreThreshold: score(3),
		PACycleRecords: map[string]rundir.PACycleRecord{"1": {CycleNumber: 1},
			"2": {CycleNumber: 2, PAScore: score(9)}}}
	states := func() (all []view.StepState) {
		for _, step := range view.Of(s, noon).Cycle.Steps {
			all = append(all, step.At)
		}
		return all
	}
	const done, runs, waits, skipped = view.StepDone, view.StepRunning, view.StepWaiting, view.StepSkipped
	require.Equal(t, []view.StepState{done, done, runs, waits, waits, waits}, states())
	s.State.Status = run.Paused
	require.Equal(t, []view.StepState{done, done, waits, waits, waits, waits}, states())
	s.State.Next.Round = 3
	require.Equal(t, []view.StepState{done, done, done, done, skipped, done}, states())
	s.State.Next.Round, s.State.Status = 2, run.Done
	require.Equal(t, []view.StepState{done, done, done, done, skipped, done}, states())
	s.State.Next.Stage = 2
	record.ScreenshotCount, record.Auditors, record.Weaver, record.Refine = 0, nil, nil, &rundir.RefineRecord{}
	s.Records.OpenCycle = &record
	require.Equal(t, []view.StepState{skipped, skipped, skipped, skipped, done, skipped}, states())

	record.Auditors = []rundir.AuditorRecord{{ID: "judge-x", Score: score(1)}, {ID: "judge-y"}}
	c := view.Of(s, noon).Cycle
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
	require.Equal(t, []view.Auditor{{Name: "x", Score: score(1)}, {Name: "y"}}, c.Auditors)
	var names []string
	for _, step := range c.Steps {
		names = append(names, step.Name)
	}
	require.Equal(t, []string{"Screenshots", "Judges", "Weaver", "Ask", "Fixer", "Tests"}, names)
	require.Equal(t, []view.Point{{Cycle: 2, Score: 2}}, view.Trend(s.Records))
	record.Auditors = []rundir.AuditorRecord{{ID: "judge-x"}}
	require.Equal(t, "judge-x", view.Of(s, noon).Cycle.Auditors[0].Name, "a single name has no common part")
	record.Auditors = []rundir.AuditorRecord{{ID: "a-x"}, {ID: "b-x"}}
	require.Equal(t, "a-x", view.Of(s, noon).Cycle.Auditors[0].Name)
	s.Plan = nil
	require.Empty(t, view.Of(s, noon).Cycle.Stage)
}

func TestCostsOfRuns(t *testing.T) {
	s := view.Source{Plan: loops(), State: run.State{Status: run.Running, Next: run.Place{Stage: 0, Round: 1},
		Passes: run.PassCount{Total: 4, LastSettled: 2}, Spent: run.Totals{USD: 6, EstimatedUSD: 0.5}, SunkUSD: 1,
		Budget: run.Budget{CapUSD: 20, WarnUSD: 15}, ByRole: []run.Named{
			{Name: "b", Totals: run.Totals{USD: 4, Unknown: 3}}, {Name: "a", Totals: run.Totals{USD: 2}}}}}
	s.Records = rundir.PipelineState{MaxPACycles: 2, CompletedPACycles: 1, Cost: rundir.CostTracker{
		ByRole: map[string]rundir.RoleCost{"a": {PassCount: 1}, "b": {PassCount: 2}}}}
	mean, projected := 2.0, 7.0+(2+5)*2
	require.Equal(t, view.Cost{Total: 7, Sunk: 1, Estimated: 0.5, Budget: 20, Warn: 15, Percent: 35, Calls: 3,
		Mean:      &mean,
		Projected: &projected, Roles: []view.RoleCost{{Role: "b", USD: 4, Calls: 2, Unknown: 3},
			{Role: "a", USD: 2, Calls: 1}}},
		view.Of(s, noon).Cost, "two passes and a cycle of five calls may still come")
	s.State.Budget.CapUSD = 1000
	require.Equal(t, 1, view.Of(s, noon).Cost.Percent)
	projects := s
	projects.State.Projects = []run.ProjectState{{USD: 3, Unknown: 1}}
	c := view.Of(projects, noon).Cost
	require.Equal(t, 10.0, c.Total, "the projects of a run are part of its cost")
	require.Equal(t, 1, c.Unknown)
	s.State.SunkUnknown = 2
	c = view.Of(s, noon).Cost
	require.Equal(t, 2, c.Unknown)
	require.Nil(t, c.Mean)
	require.Nil(t, c.Projected)
	s.Records.CompletedPACycles, s.State.Passes.LastSettled, s.State.Next.Stage = 9, 9, 1
	require.Equal(t, 7.0, *view.Projected(s))
	s.Plan, s.Records.CompletedPACycles = nil, 1
	require.Equal(t, 17.0, *view.Projected(s), "five calls of a cycle without a plan")
	s.State.DurationsMS = []int64{1000, 1000, 1000}
	s.State.Wording = run.WordingStages
	require.Equal(t, 4*time.Second, *view.Remaining(s), "four steps of a cycle without a plan")
	s.Plan, s.State.Next = loops(), run.Place{Stage: 1, Round: 1}
	require.Equal(t, 5*time.Second, *view.Remaining(s), "five steps: a question costs no time")
	require.Equal(t, "$5.41", view.USD(5.412))
}

func TestQualityOfRuns(t *testing.T) {
	s := view.Source{State: run.State{Passes: run.PassCount{Unmodified: 1, Retries: 2},
		Notes: []run.Notes{{Name: "a", Entries: 9},
			{Name: "b", Entries: 9}, {Name: "c", Entries: 5}}}}
	s.Records = rundir.PipelineState{ConvictionEntryCount: 3, DiscoveryEntryCount: 4,
		PassRecords: map[string]rundir.PassRecord{
			"1": {ValidationPassed: true, ValidationDetails: run.Validation{Warnings: []string{"x"}}},
			"2": {ValidationDetails: run.Validation{Warnings: []string{"y", "z"}}}},
		ErrorHistory: []rundir.ErrorRecord{{Recovered: true}, {}, {}}}
	require.Equal(t, view.Quality{Passed: 1, Judged: 2, Warnings: 3, Notes: []view.Note{{Name: "a", Entries: 3},
		{Name: "b", Entries: 4}, {Name: "c", Entries: 5}}, Unmodified: 1, Retries: 2, Recovered: 1, Unrecovered: 2},
		view.Of(s, noon).Quality)
}

func TestLastPasses(t *testing.T) {
	s := view.Source{}
	s.Records.PassRecords = map[string]rundir.PassRecord{"2": {GlobalPassNumber: 2}, "9": {GlobalPassNumber: 9},
		"10": {GlobalPassNumber: 10, SubsetID: "S1", SubsetPassNumber: 3, Rotation: "B", AgentRole: "r", DurationMS: 1500,
			ValidationPassed: true, Outcome: "ok", RetryCount: 4, Tokens: rundir.PassTokens{EstimatedCostUSD: 0.5,
				UnknownCalls: 1}},
		"11": {GlobalPassNumber: 11}}
	s.Records.Checkpoints = []rundir.CheckpointRecord{{ID: "cp-S1", AtPassNumber: 10},
		{ID: "cp-1", AtPassNumber: 10, AtPACycle: 1},
		{ID: "cp-2", AtPassNumber: 9}}
	got := view.Of(s, noon).Last
	require.Equal(t, []view.Numbered{{s.Records.PassRecords["9"], "cp-2"}, {s.Records.PassRecords["10"], "cp-S1"},
		{s.Records.PassRecords["11"], ""}}, got)
	require.Equal(t, "S1/3B R", got[1].Name())
}

func TestElapsedTime(t *testing.T) {
	s := view.Source{Pauses: []view.Pause{{From: noon.Add(-10 * time.Minute)}}}
	require.Zero(t, view.Of(s, noon).Timing.Elapsed, "it has not started")
	s.Records.StartedAt = run.Time(noon.Add(-time.Hour))
	f := view.Of(s, noon)
	require.Equal(t, []time.Duration{50 * time.Minute, 10 * time.Minute},
		[]time.Duration{f.Timing.Elapsed, f.Timing.Paused})
	require.Equal(t, 15*time.Minute, f.Tick(s, noon.Add(5*time.Minute)).Timing.Paused)
	over := "later"
	s.Records.CompletedAt = &over
	require.Equal(t, 50*time.Minute, view.Of(s, noon).Timing.Elapsed)
	require.Zero(t, view.Of(s, noon.Add(-2*time.Hour)).Timing.Elapsed)
	at := func(clock string) rundir.DecisionRow {
		return rundir.DecisionRow{TS: "2026-02-28T" + clock + ":00.000Z"}
	}
	row := func(clock, decision string) rundir.DecisionRow { r := at(clock); r.Decision = decision; return r }
	moment := func(clock string) time.Time {
		m, err := time.Parse(run.TimeFormat, at(clock).TS)
		require.NoError(t, err)
		return m
	}
	require.Equal(t, []view.Pause{{From: moment("10:00"), To: moment("10:30")},
		{From: moment("10:40"), To: moment("11:00")},
		{From: moment("12:00"), To: moment("12:10")}, {From: moment("12:20")}},
		view.Pauses([]rundir.DecisionRow{row("09:00", "resume"), row("10:00", "wait-for-limit"), row("10:10", "ask"),
			{TS: "bad", Decision: "resume"}, row("10:30", "end-wait-for-limit"), row("10:40", "accept-output"),
			row("11:00", "resume"), row("11:10", "execute-pass"), row("12:00", "ask"), row("12:10", "decide-continue"),
			row("12:20", "end-pipeline"), row("12:30", "pause-pipeline")}), "the first resume follows nothing")
}

package view_test

import (
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/examples"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// corpus is the plan of the seed's pipeline: seven sets of eight passes, then at most six cycles.
func corpus(t *testing.T) *pipeline.Plan {
	t.Helper()
	folder, err := fs.Sub(examples.Files, "corpus")
	require.NoError(t, err)
	src, err := fs.ReadFile(folder, "pipeline.yaml")
	require.NoError(t, err)
	def, problems := pipeline.Parse("pipeline.yaml", src, folder)
	require.Empty(t, problems)
	return pipeline.Expand(def)
}

var noon = time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC)

// settled is the seed's run when n passes have settled: a builder's takes 166 s and costs $1.18, a
// verifier's 42 s and $0.87 (requirement 002 §7.1). The next pass runs for 134 s. The run has paused once, for
// half an hour.
func settled(t *testing.T, n int) view.Source {
	t.Helper()
	s := view.Source{Plan: corpus(t)}
	s.Records = rundir.PipelineState{
		RunID: "a1b2c3d4", StartedAt: run.Time(noon.Add(-5 * time.Hour)), MaxPACycles: 6, PassRecords: map[string]rundir.PassRecord{},
		ConvictionEntryCount: n, DiscoveryEntryCount: n - 1,
		Cost: rundir.CostTracker{ByRole: map[string]rundir.RoleCost{}},
	}
	spent, byRole := 0.0, []run.Named{{Name: "builder"}, {Name: "verifier"}}
	for i := 1; i <= n; i++ {
		role, took, usd := "builder", int64(166_000), 1.18
		if in := (i-1)%8 + 1; in == 2 || in == 5 || in == 8 {
			role, took, usd = "verifier", 42_000, 0.87
		}
		set := (i-1)/8 + 1
		s.Records.PassRecords[fmt.Sprint(i)] = rundir.PassRecord{
			GlobalPassNumber: i, SubsetPassNumber: (i-1)%8 + 1, SubsetID: fmt.Sprintf("S%d", set),
			Rotation: "AAABBBCC"[(i-1)%8 : (i-1)%8+1], AgentRole: role, DurationMS: took,
			ValidationPassed: i != 7, Outcome: "ok", Tokens: rundir.PassTokens{EstimatedCostUSD: usd},
		}
		row := s.Records.Cost.ByRole[role]
		row.PassCount++
		s.Records.Cost.ByRole[role] = row
		of := &byRole[slices.IndexFunc(byRole, func(r run.Named) bool { return r.Name == role })]
		of.USD, spent = run.Cents(of.USD+usd), run.Cents(spent+usd)
	}
	s.State = run.State{
		Status: run.Running, Pipeline: "corpus-integration", Next: run.Place{
			Stage: 0, Round: n/8 + 1, Step: n % 8,
		}, Passes: run.PassCount{Total: 56, LastSettled: n, Unmodified: 2, Retries: 1},
		Notes:  []run.Notes{{Name: "conviction"}, {Name: "discovery"}},
		ByRole: byRole, Spent: run.Totals{USD: spent}, Budget: run.Budget{CapUSD: 350, WarnUSD: 280},
		InFlight: []run.InFlightCall{{
			Step: fmt.Sprintf("%03d", n+1), Role: "builder", Attempt: 1,
			StartedAt: run.Time(noon.Add(-134 * time.Second)),
		}},
	}
	s.Pauses = []view.Pause{{From: noon.Add(-2 * time.Hour), To: noon.Add(-90 * time.Minute)}}
	return s
}

// TestAtPass35 is requirement 002 §7.1 with its disagreements resolved: 34 of 56 have settled, and the 35th runs.
func TestAtPass35(t *testing.T) {
	f := view.Of(settled(t, 34), noon)

	require.Equal(t, view.Progress{
		Stage: "Corpus integration", Done: 34, Total: 56, Percent: 61, Set: "S5",
		Theme: "Grammar + Compositional Rules",
		InSet: 3, OfSet: 8, Order: "A", OrderLabel: "Base ordering",
		Role: "builder",
	}, f.Progress)

	require.Len(t, f.InFlight, 1)
	now := f.InFlight[0]
	require.Equal(t, 35, now.Number)
	require.Equal(t, "2m 14s", view.Duration(now.Elapsed))
	require.Equal(t, []string{"Mechanisms", "Rules", "Combinations", "Borders", "SemanticRules"}, now.Files)

	require.Equal(t, "4h 30m", view.Duration(f.Timing.Elapsed), "five hours, half an hour of them paused")
	require.Equal(t, "1m 58s", view.Duration(*f.Timing.Mean), "(21·166 + 13·42) / 34 = 118.6")
	require.Equal(t, "15m 56s", view.Duration(*f.Timing.MeanSet), "5·166 + 3·42")
	require.Equal(t, "1h 22m", view.Duration(*f.Timing.Remaining),
		"the last eight, oldest first, are bbvbbvbv: (19·166 + 17·42) / 36 = 107.4 s, times 22 passes and 6 cycles "+
			"of 4 steps")

	require.Equal(t, 36.09, f.Cost.Total, "21·1.18 + 13·0.87")
	require.Equal(t, 10, f.Cost.Percent)
	require.Equal(
		t, []view.RoleCost{{Role: "builder", USD: 24.78, Calls: 21}, {Role: "verifier", USD: 11.31, Calls: 13}},
		f.Cost.Roles,
	)
	require.InDelta(t, 1.06, *f.Cost.Mean, 0.005)
	require.InDelta(t, 91.29, *f.Cost.Projected, 0.005, "36.09 + (22 + 6·5) · 36.09/34")

	require.Equal(t, view.Quality{
		Passed: 33, Judged: 34, Notes: []view.Note{{Name: "conviction", Entries: 34},
			{Name: "discovery", Entries: 33}},
		Unmodified: 2, Retries: 1,
	}, f.Quality)

	var grid []string
	for _, s := range f.Sets {
		grid = append(grid, fmt.Sprintf("%s %d/%d %d", s.ID, s.Done, s.Total, s.Steps(8)))
	}
	require.Equal(t, []string{"S1 8/8 8", "S2 8/8 8", "S3 8/8 8", "S4 8/8 8", "S5 2/8 2", "S6 0/8 0", "S7 0/8 0"}, grid)

	var last []string
	for _, p := range f.Last {
		last = append(last, fmt.Sprintf("%d: %s %.0fs %s %v", p.GlobalPassNumber, p.Name(), float64(p.DurationMS)/1000,
			view.USD(p.Tokens.EstimatedCostUSD), p.ValidationPassed))
	}
	require.Equal(
		t, []string{
			"32: S4/8C Verifier 42s $0.87 true", "33: S5/1A Builder 166s $1.18 true",
			"34: S5/2A Verifier 42s $0.87 true",
		}, last,
	)
	require.Nil(t, f.Cycle)
	require.Empty(t, f.Trend)
}

func TestUnknownFiguresAreOmitted(t *testing.T) {
	f := view.Of(settled(t, 2), noon)
	require.Nil(t, f.Timing.Remaining, "two passes are too few")
	require.Nil(t, f.Timing.MeanSet)
	require.NotNil(t, f.Timing.Mean)

	f = view.Of(view.Source{}, noon)
	require.Equal(t, view.Timing{}, f.Timing)
	require.Nil(t, f.Cost.Projected)
	require.Nil(t, f.Cost.Mean)
}

func TestFinishedRunHasNothingRemaining(t *testing.T) {
	s := settled(t, 34)
	s.State.Status = run.Failed
	over := run.Time(noon.Add(-time.Hour))
	s.Records.CompletedAt = &over
	f := view.Of(s, noon)
	require.Nil(t, f.Timing.Remaining)
	require.Equal(t, "3h 30m", view.Duration(f.Timing.Elapsed), "until it ended")
	require.Equal(t, f.Cost.Total, *f.Cost.Projected)
	require.Empty(t, f.InFlight, "the call has ended")
}

// inCycle2 is requirement 002 §7.2: the weaver of cycle 2 has spoken, and the refinement is due.
func inCycle2(t *testing.T) view.Source {
	t.Helper()
	s := settled(t, 56)
	score := func(v float64) *float64 { return &v }
	s.Records.PAScoreThreshold, s.Records.CompletedPACycles = score(3.5), 1
	s.Records.PACycleRecords = map[string]rundir.PACycleRecord{
		"1": {CycleNumber: 1, PAScore: score(2.5), ScreenshotCount: 9},
	}
	s.Records.OpenCycle = &rundir.PACycleRecord{
		CycleNumber: 2, PAScore: score(3), ScreenshotCount: 9, Weaver: &rundir.ReportRecord{},
		Auditors: []rundir.AuditorRecord{{ID: "auditor-A", Score: score(2.5)}, {ID: "auditor-B", Score: score(3)}, {
			ID: "auditor-C", Score: score(3.5),
		}},
	}
	s.State.Next = run.Place{Stage: 1, Round: 2, Step: 3}
	s.State.InFlight = []run.InFlightCall{{
		Step: "pa-hardening/4", Role: "refine", Attempt: 1, StartedAt: run.Time(noon.Add(-time.Minute)),
	}}
	return s
}

func TestInCycle2(t *testing.T) {
	f := view.Of(inCycle2(t), noon)
	c := f.Cycle
	require.Equal(t, 2, c.Number)
	require.Equal(t, 6, c.Max)
	require.Equal(t, 2.5, *c.Previous)
	require.Equal(t, 3.0, *c.Score)
	require.Equal(t, 3.5, *c.Target)
	require.False(t, c.Met)
	require.Equal(t, "PA-05", c.Name)
	require.Equal(t, 4.0, c.MaxScore)
	require.Equal(t, "weaver", c.Judge)
	require.Equal(t, []view.CycleStep{
		{Name: "Screenshots", At: view.StepDone}, {Name: "Auditors", At: view.StepDone},
		{Name: "Weaver", At: view.StepDone}, {Name: "Refine", At: view.StepRunning},
	}, c.Steps)
	var output []string
	for _, a := range c.Auditors {
		output = append(output, fmt.Sprintf("%s: %.1f", a.Name, *a.Score))
	}
	require.Equal(t, []string{"A: 2.5", "B: 3.0", "C: 3.5"}, output)
	require.Equal(t, []view.Point{{Cycle: 1, Score: 2.5}, {Cycle: 2, Score: 3}}, f.Trend)
	require.Equal(t, 2, f.Progress.Round)

	total := 35*1.18 + 21*0.87
	require.InDelta(t, total+5*5*total/56, *f.Cost.Projected, 0.005, "five cycles of five calls may still come")
}

func TestEarlyLoopEndHasNothingRemaining(t *testing.T) {
	s := inCycle2(t)
	s.State.Next = run.Place{Stage: 2, Round: 1}
	s.State.InFlight = nil
	f := view.Of(s, noon)
	require.Equal(t, time.Duration(0), *f.Timing.Remaining)
	require.Equal(t, f.Cost.Total, *f.Cost.Projected)
}

func TestClosedCycleShowsSkippedSteps(t *testing.T) {
	s := inCycle2(t)
	s.State.Status, s.State.InFlight = run.Done, nil
	last := *s.Records.OpenCycle
	last.MetThreshold = true
	s.Records.PACycleRecords["2"], s.Records.OpenCycle = last, nil
	c := view.Of(s, noon).Cycle
	require.False(t, c.Open)
	require.Equal(t, []view.StepState{view.StepDone, view.StepDone, view.StepDone, view.StepSkipped},
		[]view.StepState{c.Steps[0].At, c.Steps[1].At, c.Steps[2].At, c.Steps[3].At})
}

func TestSettledOfTurnLoop(t *testing.T) {
	event := func(seq int64, kind run.Kind, payload any) run.Event {
		raw, err := run.Payload(payload)
		require.NoError(t, err)
		return run.Event{Seq: seq, Kind: kind, Payload: raw}
	}
	turn, tests := run.Pass{Step: "turns/1", Role: "worker", Round: 3}, run.Pass{
		Step: "turns/2", Role: "command", Round: 3,
	}
	f := view.Of(view.Source{Recent: []run.Event{
		event(1, run.KindPassAttempt, run.PassAttempt{Pass: turn, Category: "rate-limit", Message: "429",
			DurationMS: 1000}),
		event(2, run.KindPassEnd, run.PassEnd{
			Pass: turn, Outcome: "ok", Verdict: "more", DurationMS: 90_000, Spend: run.Spend{USD: 0.5},
		}),
		event(3, run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "turns/1", Call: "c", Changed: 4}),
		event(4, run.KindPassEnd, run.PassEnd{Pass: tests, Outcome: "ok", ID: "tests", Value: "failed"}),
		event(5, run.KindWorkspaceUpdated, run.WorkspaceUpdated{Cause: "edited", Changed: 9}),
	}}, noon)
	require.Len(t, f.Settled, 3)
	require.True(t, f.Settled[0].Failed)
	require.Equal(t, "more", f.Settled[1].Verdict)
	require.Equal(t, 4, f.Settled[1].Changed)
	require.Equal(t, 0.5, f.Settled[1].USD)
	require.EqualValues(t, 90_000, f.Settled[1].DurationMS)
	require.Equal(t, "failed", f.Settled[2].Value)
	require.Zero(t, f.Settled[2].Changed, "the edit belongs to no turn")
}

func TestFiguresOfStages(t *testing.T) {
	s := settled(t, 2)
	s.State.Wording, s.State.DurationsMS = run.WordingStages, []int64{1000, 5000, 6000}
	s.State.Rounds, s.State.Unmet, s.State.Next = 3, "verdict == good", run.Place{Stage: 2}
	f := view.Of(s, noon)
	require.Equal(t, 4*time.Second, *f.Timing.Mean, "of all passes, not of the numbered ones")
	last := f.Stages[len(f.Stages)-1]
	require.True(t, last.Repeats)
	require.Equal(t, 3, last.Rounds)
	require.Equal(t, "verdict == good", last.Unmet)
	require.Empty(t, f.Stages[0].Unmet)
}

func TestTitle(t *testing.T) {
	for name, want := range map[string]string{"": "", "critic": "Critic", "éditeur": "Éditeur", "2nd": "2nd"} {
		require.Equal(t, want, view.Title(name))
	}
}

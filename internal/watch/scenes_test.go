package watch

import (
	"fmt"
	"time"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// at35 is the example of requirement 002 §7.1: pass 35 of 56 runs.
func at35() Scene {
	d := func(s int) *time.Duration { v := time.Duration(s) * time.Second; return &v }
	usd := func(v float64) *float64 { return &v }
	sets := []view.Set{{ID: "S1", Done: 8, Total: 8}, {ID: "S2", Done: 8, Total: 8}, {ID: "S3", Done: 8, Total: 8},
		{ID: "S4", Done: 8, Total: 8},
		{ID: "S5", Done: 3, Total: 8}, {ID: "S6", Total: 8}, {ID: "S7", Total: 8}}
	s := Scene{
		State: run.State{Pipeline: "corpus-integration", RunID: "a1b2c3d4-e5f6", StartedAt: "2026-02-28T14:23:00.000Z",
			Status: run.Running, Phase: "corpus-integration"},
		Status: run.Running,
		Figures: view.Figures{
			Words: run.WordingCorpus.Words(),
			Progress: view.Progress{Stage: "Corpus integration", Done: 34, Total: 56, Percent: 61, Set: "S5",
				Theme: "Grammar + Compositional Rules", InSet: 3, OfSet: 8,
				Order: "A", OrderLabel: "Base ordering", Role: "builder"},
			InFlight: []view.InFlightCall{{Step: "035", Role: "builder", Number: 35, Set: "S5", Order: "A",
				Attempt: 2, Elapsed: 134 * time.Second,
				Files: []string{"Mechanisms", "Rules", "Combinations", "Borders", "SemanticRules"}}},
			Timing: view.Timing{Elapsed: 263 * time.Minute, Paused: 12 * time.Minute, Mean: d(272), MeanSet: d(2178),
				Remaining: d(11400)},
			Cost: view.Cost{Total: 87.45, Budget: 350, Warn: 280, Percent: 25, Mean: usd(2.5), Projected: usd(140),
				Roles: []view.RoleCost{{Role: "builder", USD: 62.3}, {Role: "verifier", USD: 25.15}, {Role: "pa"}}},
			Quality: view.Quality{Passed: 34, Judged: 34,
				Notes:      []view.Note{{Name: "conviction", Entries: 31}, {Name: "discovery", Entries: 28}},
				Unmodified: 2, Retries: 1},
			Sets: sets,
			Last: []view.Numbered{numbered(33, "S5", 1, "A", "builder", 166, 1.18),
				numbered(34, "S5", 2, "A", "verifier", 42, 0.87)},
		},
		Output: Output{Who: "builder", Lines: []string{"I read the page.", "I weave in Mechanisms, one level deeper."}},
	}
	last := s.Figures.Last
	last[0].ValidationPassed, last[0].RetryCount, last[1].Checkpoint = true, 1, "cp-S5"
	return s
}

// inCycle2 is the example of requirement 002 §7.2.
func inCycle2() Scene {
	score := func(v float64) *float64 { return &v }
	s := at35()
	s.Figures.Progress = view.Progress{Stage: "PA hardening", Done: 56, Total: 56, Percent: 100, Round: 2, Max: 6,
		Role: "refine"}
	s.Figures.InFlight = []view.InFlightCall{{Step: "pa/4", Role: "refine", Elapsed: 9 * time.Second}}
	s.Figures.Cycle = &view.Cycle{
		Stage: "PA hardening", Name: "PA-05", MaxScore: 4, Judge: "weaver", Number: 2, Max: 6, Open: true,
		Previous: score(2.5), Score: score(3), Target: score(3.5),
		Steps: []view.CycleStep{{Name: "Screenshots", At: view.StepDone},
			{Name: "Auditors", At: view.StepDone}, {Name: "Weaver", At: view.StepDone},
			{Name: "Refine", At: view.StepRunning}},
		Auditors: []view.Auditor{
			{Name: "A", Score: score(2.5)}, {Name: "B", Score: score(3)}, {Name: "C", Score: score(3.5)},
		},
	}
	s.Figures.Trend = []view.Point{{Cycle: 1, Score: 2.5}, {Cycle: 2, Score: 3}}
	return s
}

// asking waits for an operator.
func asking() Scene {
	return Scene{
		State: run.State{Pipeline: "plan-implement-review", Task: "Fix the sum", RunID: "c50bb1c8-0000",
			StartedAt: "2026-02-28T14:23:00.000Z", Status: run.AwaitingPhaseHandoff,
			Wording: run.WordingStages, Phase: "plan"},
		Task: "Fix the sum", Status: run.AwaitingPhaseHandoff,
		Figures: view.Figures{
			Words:    run.WordingStages.Words(),
			Progress: view.Progress{Stage: "Plan", Total: 3},
			Timing:   view.Timing{Elapsed: 42 * time.Second},
			Cost:     view.Cost{Total: 0.02, Roles: []view.RoleCost{{Role: "planner", USD: 0.02}}},
			Stages: []view.Stage{{Title: "Plan", Max: 1, Current: true}, {Title: "Implement", Max: 1},
				{Title: "Review", Max: 3, Repeats: true}},
			Settled: []view.Settled{{Pass: view.Pass{Role: "planner", Round: 1, Outcome: "ok",
				USD: 0.02, DurationMS: 42_000}}},
		},
		Question: &Question{
			Question: run.Question{ID: "q1", Kind: run.QuestionHandoff, Text: "Is this the right plan?", Trigger: "rejected",
				Type: "human_feedback_always", Round: 1, RequestedAt: "2026-02-28T14:24:00.000Z",
				Actions: []string{"continue", "retry_feedback", "halt"}},
			About: []string{"_orchestrator/passes/pass-001/raw-output.txt",
				"  1. total.sh: continue while read succeeds, or something was read."},
		},
	}
}

// waitingForLimit waits for a usage limit.
func waitingForLimit() Scene {
	s := at35()
	s.Status, s.State.Status, s.StatusText = run.WaitingLimit, run.WaitingLimit, string(run.WaitingLimit)
	s.Zone = time.FixedZone("CET", 3600)
	s.State.Limited = run.NewLimited([]run.LimitedCall{{
		Limit: run.Limit{Kind: run.LimitPlan, Account: "claude-max"},
		Until: run.Time(s.Now.Add(133*time.Minute + 12*time.Second)),
	}})
	s.Why = "The run waits until its provider answers again.\nPress r to try at once, p to pause."
	return s
}

// delivering waits for a decision on the delivery, after a loop that ended without meeting its condition.
func delivering() Scene {
	s := asking()
	s.State.Status, s.State.Phase, s.State.Unmet = run.AwaitingGateDecision, "publish", "verdict == good"
	s.Status = s.State.Status
	f := &s.Figures
	f.Timing.Paused = 3 * time.Minute
	f.Progress = view.Progress{Stage: "Publish", Done: 3, Total: 3, Percent: 100}
	f.Stages = []view.Stage{{Title: "Outline", Max: 1, Rounds: 1, Finished: true},
		{Title: "Draft", Max: 3, Rounds: 3, Repeats: true, Finished: true, Unmet: "verdict == good"},
		{Title: "Publish", Max: 1, Finished: true}}
	projected := 1.42
	f.Cost = view.Cost{Total: 1.42, Unknown: 3, Projected: &projected, Roles: []view.RoleCost{
		{Role: "author", USD: 0.11}, {Role: "writer", USD: 1.26}, {Role: "editor", Unknown: 3},
		{Role: "publisher", USD: 0.05}}}
	f.Settled = []view.Settled{
		{Pass: view.Pass{Role: "writer", Round: 3, Outcome: "ok", USD: 0.42, DurationMS: 1000, Changed: 1}},
		{Pass: view.Pass{Role: "editor", Round: 3, Outcome: "ok", Unknown: 1, DurationMS: 1000, Verdict: "weak"}},
		{Pass: view.Pass{Role: "publisher", Round: 1, Number: 2, Outcome: "ok", USD: 0.05, DurationMS: 1000}},
	}
	q := s.Question
	q.Text = "The last verdict is weak, which does not approve the changes. What should happen to the changes?"
	q.About = []string{"delivery.patch"}
	for i := range 40 {
		q.About = append(q.About, fmt.Sprintf("  +line %d", i))
	}
	q.Kind, q.Actions = run.QuestionDelivery, run.Offered(run.QuestionDelivery, run.TriggerRejected)
	return s
}

// closing checks the work once more after the last round of a loop.
func closing() Scene {
	s := delivering()
	s.State.Status, s.Status, s.Question = run.Running, run.Running, nil
	s.Figures.Progress = view.Progress{Stage: "Draft", Done: 2, Total: 3, Percent: 67, Round: 4, Max: 3,
		After: "closing check after 3 rounds"}
	s.Figures.Stages[1] = view.Stage{Title: "Draft", Max: 3, Rounds: 3, Repeats: true, Current: true,
		After: "closing check after 3 rounds"}
	return s
}

// parallel works on several lanes at once.
func parallel() Scene {
	s := asking()
	s.Question, s.State.Status, s.Status = nil, run.Running, run.Running
	s.State.Lanes = &run.Lanes{Count: 20, Done: 9, Failed: 1, Merged: 7,
		Active: []run.Lane{{LanePlace: run.LanePlace{Index: 10, Key: "k", Name: "k.go"}}},
		Asked: []run.Lane{{LanePlace: run.LanePlace{Index: 11, Key: "l", Name: "l.go"}, Outcome: run.ChildConflict,
			Reason: "it conflicts"}}}
	s.Figures.Progress.Percent = 17
	s.Figures.Lanes = []view.LaneNow{
		{ActiveLane: run.ActiveLane{Number: 11, Name: "k.go", Does: "step 2 of 3, reviewer"}, Elapsed: 12 * time.Second},
		{ActiveLane: run.ActiveLane{Number: 12, Name: "l.go", Does: "waits for an operator: it conflicts", Waiting: true}}}
	s.Figures.Settled = []view.Settled{
		{Pass: view.Pass{Step: "r.2.j", Role: "lane", Item: "j.go", Outcome: run.CategoryOK, USD: 0.25,
			DurationMS: 42_000}},
		{Pass: view.Pass{Step: "r.2.i", Role: "lane", Item: "i.go", Outcome: run.Category(run.ChildFailed)}, Failed: true,
			Message: "it is broken"}}
	return s
}

// numbered is a numbered pass.
func numbered(n int, set string, inSet int, order, role string, seconds int64, usd float64) view.Numbered {
	var p view.Numbered
	p.GlobalPassNumber, p.SubsetID, p.SubsetPassNumber, p.Rotation, p.AgentRole = n, set, inSet, order, role
	p.DurationMS, p.Tokens.EstimatedCostUSD = 1000*seconds, usd
	return p
}

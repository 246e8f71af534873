package watch

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/figures"
	"github.com/passbook-run/passbook/run"
)

var update = flag.Bool("update", false, "rewrite the screens in testdata")

var codes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// at35 is the example of requirement 002 §7.1: pass 35 of 56 runs.
func at35() Scene {
	d := func(s int) *time.Duration { v := time.Duration(s) * time.Second; return &v }
	usd := func(v float64) *float64 { return &v }
	sets := []figures.Set{{ID: "S1", Done: 8, Total: 8}, {ID: "S2", Done: 8, Total: 8}, {ID: "S3", Done: 8, Total: 8},
		{ID: "S4", Done: 8, Total: 8},
		{ID: "S5", Done: 3, Total: 8}, {ID: "S6", Total: 8}, {ID: "S7", Total: 8}}
	return Scene{
		State: run.State{Pipeline: "corpus-integration", RunID: "a1b2c3d4-e5f6", StartedAt: "2026-02-28T14:23:00.000Z",
			Status: run.Running, Phase: "corpus-integration"},
		Status: run.Running,
		Figures: figures.Figures{
			Words: run.WordingCorpus.Words(),
			Progress: figures.Progress{Stage: "Corpus integration", Done: 34, Total: 56, Percent: 61, Set: "S5",
				Theme: "Grammar + Compositional Rules", InSet: 3, OfSet: 8,
				Order: "A", OrderLabel: "Base ordering", Role: "builder"},
			InFlight: []figures.InFlightCall{{Step: "035", Role: "builder", Number: 35, Set: "S5", Order: "A",
				Attempt: 2, Elapsed: 134 * time.Second,
				Files: []string{"Mechanisms", "Rules", "Combinations", "Borders", "SemanticRules"}}},
			Timing: figures.Timing{Elapsed: 263 * time.Minute, Paused: 12 * time.Minute, Mean: d(272), MeanSet: d(2178),
				Remaining: d(11400)},
			Cost: figures.Cost{Total: 87.45, Budget: 350, Warn: 280, Percent: 25, Mean: usd(2.5), Projected: usd(140),
				Roles: []figures.Role{{Name: "builder", USD: 62.3}, {Name: "verifier", USD: 25.15}, {Name: "pa"}}},
			Quality: figures.Quality{Passed: 34, Judged: 34,
				Notes:      []figures.Note{{Name: "conviction", Entries: 31}, {Name: "discovery", Entries: 28}},
				Unmodified: 2, Retries: 1},
			Sets: sets,
			Last: []figures.Pass{
				{Number: 33, Set: "S5", InSet: 1, Order: "A", Role: "builder", Duration: 166 * time.Second, USD: 1.18,
					Passed: true, Retries: 1},
				{Number: 34, Set: "S5", InSet: 2, Order: "A", Role: "verifier", Duration: 42 * time.Second, USD: 0.87,
					Checkpoint: "cp-S5"},
			},
		},
		Output: Output{Who: "builder", Lines: []string{"I read the page.", "I weave in Mechanisms, one level deeper."}},
	}
}

// inCycle2 is the example of requirement 002 §7.2.
func inCycle2() Scene {
	score := func(v float64) *float64 { return &v }
	s := at35()
	s.Figures.Progress = figures.Progress{Stage: "PA hardening", Done: 56, Total: 56, Percent: 100, Round: 2, Max: 6,
		Role: "refine"}
	s.Figures.InFlight = []figures.InFlightCall{{Step: "pa/4", Role: "refine", Elapsed: 9 * time.Second}}
	s.Figures.Cycle = &figures.Cycle{
		Stage: "PA hardening", Name: "PA-05", MaxScore: 4, Judge: "weaver", Number: 2, Max: 6, Open: true,
		Previous: score(2.5), Score: score(3), Target: score(3.5),
		Steps: []figures.CycleStep{{Name: "Screenshots", At: figures.StepDone},
			{Name: "Auditors", At: figures.StepDone}, {Name: "Weaver", At: figures.StepDone},
			{Name: "Refine", At: figures.StepRunning}},
		Auditors: []figures.Auditor{
			{Name: "A", Score: score(2.5)}, {Name: "B", Score: score(3)}, {Name: "C", Score: score(3.5)},
		},
	}
	s.Figures.Trend = []figures.Point{{Cycle: 1, Score: 2.5}, {Cycle: 2, Score: 3}}
	return s
}

// foreign is a run that another program recorded.
func foreign() Scene {
	return Scene{State: run.State{Task: "Add input validation", Status: run.Done, Seq: 34},
		Task: "Add input validation", Status: run.Done, Why: "It is through."}
}

// asking waits for an operator.
func asking() Scene {
	return Scene{
		State: run.State{Pipeline: "plan-implement-review", Task: "Mend the sum", RunID: "c50bb1c8-0000",
			StartedAt: "2026-02-28T14:23:00.000Z", Status: run.AwaitingPhaseHandoff,
			Wording: run.WordingStages, Phase: "plan"},
		Task: "Mend the sum", Status: run.AwaitingPhaseHandoff,
		Figures: figures.Figures{
			Words:    run.WordingStages.Words(),
			Progress: figures.Progress{Stage: "Plan", Done: 1, Total: 2, Percent: 50},
			Timing:   figures.Timing{Elapsed: 42 * time.Second},
			Cost:     figures.Cost{Total: 0.02, Roles: []figures.Role{{Name: "planner", USD: 0.02}}},
			Stages: []figures.Stage{{Title: "Plan", Max: 1, Current: true}, {Title: "Implement", Max: 1},
				{Title: "Review", Max: 3, Repeats: true}},
			Settled: []figures.Settled{{Pass: run.Pass{Role: "planner", Round: 1}, Outcome: "ok", Passed: true,
				USD: 0.02, Duration: 42 * time.Second}},
		},
		Question: &Question{
			Question: run.Question{ID: "q1", Kind: run.QuestionHandoff, Text: "Is this the right plan?", Trigger: "rejected",
				Type: "human_feedback_always", Round: 1, RequestedAt: "2026-02-28T14:24:00.000Z",
				Actions: []string{"continue", "retry_feedback", "halt"}},
			About: []string{"_orchestrator/passes/pass-001/raw-output.txt",
				"  1. total.sh: go on while read says so, or something was read."},
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

// TestScreens compares the screens with reviewed files.
func TestScreens(t *testing.T) {
	for _, row := range []struct {
		name          string
		scene         Scene
		width, height int
	}{
		{"pass-35-at-70x60", at35(), 70, 60}, {"pass-35-at-80x24", at35(), 80, 24},
		{"pass-35-at-140x36", at35(), 140, 36}, {"cycle-2-at-80x60", inCycle2(), 80, 60},
		{"cycle-2-at-200x40", inCycle2(), 200, 40}, {"question-at-80x50", asking(), 80, 50},
		{"question-at-140x40", asking(), 140, 40}, {"foreign-at-80x24", foreign(), 80, 24},
		{"limit-at-80x24", waitingForLimit(), 80, 24},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := codes.ReplaceAllString(Render(row.scene, row.width, row.height, true), "") + "\n"
			file := filepath.Join("testdata", row.name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got, "if it is meant: go test ./internal/watch -update")
		})
	}
}

// TestEveryWidthFits checks that no line is wider than the terminal, and that the most important lines are visible.
func TestEveryWidthFits(t *testing.T) {
	for name, scene := range map[string]Scene{"pass 35": at35(), "cycle 2": inCycle2(), "question": asking(),
		"nothing": {}} {
		for width := 20; width <= 200; width += 3 {
			for _, height := range []int{8, 24, 50, 90} {
				where := fmt.Sprintf("%s at %dx%d", name, width, height)
				lines := strings.Split(Render(scene, width, height, false), "\n")
				require.LessOrEqual(t, len(lines), height, where)
				for _, l := range lines {
					require.LessOrEqual(t, lipgloss.Width(l), width, "%s: %q", where, l)
				}
			}
		}
	}
}

// TestSymbolsRepeatColours loses nothing without colours.
func TestSymbolsRepeatColours(t *testing.T) {
	s := at35()
	s.Status = run.Failed
	for status, sign := range map[run.Status]string{run.Running: "▶ running", run.Paused: "‖ paused",
		run.Done: "✓ done", run.Failed: "✗ failed", run.Interrupted: "✗ interrupted"} {
		s.Status = status
		require.Contains(t, codes.ReplaceAllString(Render(s, 80, 60, true), ""), sign)
	}
	require.Contains(t, codes.ReplaceAllString(Render(at35(), 80, 60, true), ""), "FAIL", "pass 34 has not passed")
}

// TestThemesDiffer has different colours, and the same text, for each background.
func TestThemesDiffer(t *testing.T) {
	dark, light := Render(at35(), 80, 60, true), Render(at35(), 80, 60, false)
	require.NotEqual(t, dark, light)
	require.Equal(t, codes.ReplaceAllString(dark, ""), codes.ReplaceAllString(light, ""))
}

func TestScrollingReachesEnd(t *testing.T) {
	th := newTheme(true, colorprofile.TrueColor)
	all := []string{"1", "2", "3", "4", "5", "6"}
	shown, last := th.window(all, 0, 4, 20)
	require.Equal(t, 3, last)
	require.Equal(t, []string{"1", "2", "3"}, shown[:3])
	require.Contains(t, shown[3], "3 more lines")
	shown, _ = th.window(all, 99, 4, 20)
	require.Equal(t, []string{"4", "5", "6"}, shown[:3])
	shown, last = th.window(all, 0, 6, 20)
	require.Equal(t, all, shown)
	require.Zero(t, last)
}

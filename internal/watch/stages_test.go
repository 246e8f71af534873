package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/figures"
	"github.com/passbook-run/passbook/run"
)

// delivering waits for a decision on the delivery, after a loop that ended without meeting its condition.
func delivering() Scene {
	s := asking()
	s.State.Status, s.State.Phase, s.State.Unmet = run.AwaitingGateDecision, "publish", "verdict == good"
	s.Status = s.State.Status
	f := &s.Figures
	f.Timing.Paused = 3 * time.Minute
	f.Progress = figures.Progress{Stage: "Publish"}
	f.Stages = []figures.Stage{{Title: "Outline", Max: 1, Rounds: 1, Finished: true},
		{Title: "Draft", Max: 3, Rounds: 3, Repeats: true, Finished: true, Unmet: "verdict == good"},
		{Title: "Publish", Max: 1, Finished: true}}
	projected := 1.42
	f.Cost = figures.Cost{Total: 1.42, Unknown: 3, Projected: &projected, Roles: []figures.Role{
		{Name: "author", USD: 0.11}, {Name: "writer", USD: 1.26}, {Name: "editor", Unknown: 3},
		{Name: "publisher", USD: 0.05}}}
	one := 1
	f.Settled = []figures.Settled{
		{Pass: run.Pass{Role: "writer", Round: 3}, Outcome: "ok", USD: 0.42, Duration: time.Second, Changed: &one},
		{Pass: run.Pass{Role: "editor", Round: 3}, Outcome: "ok", Unknown: 1, Duration: time.Second, Verdict: "weak"},
		{Pass: run.Pass{Role: "publisher", Round: 1, Number: 2}, Outcome: "ok", USD: 0.05, Duration: time.Second},
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

func TestWaitingScreenShowsQuestionAndEveryChoice(t *testing.T) {
	for width := 70; width <= 160; width += 10 {
		for height := 20; height <= 60; height += 5 {
			shown := plainly(delivering(), width, height)
			words := strings.Join(strings.Fields(strings.ReplaceAll(shown, "│", " ")), " ")
			require.Contains(t, words, "What should happen to the changes?", "%dx%d", width, height)
			for i, c := range delivering().Question.Choices() {
				first, _, _ := strings.Cut(c.Meaning, " ")
				require.Regexp(t, fmt.Sprintf(`(?m)^\W*%d  %s +%s`, i+1, c.Action, first), shown, "%dx%d", width, height)
			}
		}
	}
}

func TestScreenShowsLoopWithoutItsCondition(t *testing.T) {
	shown := plainly(delivering(), 140, 80)
	require.Regexp(t, `! Draft +3 rounds without verdict == good`, shown)
	require.Regexp(t, `✓ Outline +│`, shown)
}

// TestScreenShowsTheClosingCheck: it is not a further round, and not the last one again.
func TestScreenShowsTheClosingCheck(t *testing.T) {
	s := delivering()
	s.State.Status, s.Status, s.Question = run.Running, run.Running, nil
	s.Figures.Progress = figures.Progress{Stage: "Draft", Round: 4, Max: 3, After: "closing check after 3 rounds"}
	s.Figures.Stages[1] = figures.Stage{Title: "Draft", Max: 3, Rounds: 3, Repeats: true, Current: true,
		After: "closing check after 3 rounds"}
	shown := plainly(s, 140, 80)
	require.Regexp(t, `Round +closing check after 3 rounds`, shown)
	require.Regexp(t, `▶ Draft +closing check after 3 rounds`, shown)
	require.NotContains(t, shown, "3 of at most 3")
}

func TestScreenShowsEveryRole(t *testing.T) {
	for _, width := range []int{70, 80, 110, 130, 140} {
		shown := plainly(delivering(), width, 100)
		for _, role := range []string{"Author: $0.11", "Writer: $1.26", "Editor: unknown", "Publisher: $0.05"} {
			require.Contains(t, shown, role, width)
		}
	}
}

func TestScreenAlignsLastSteps(t *testing.T) {
	shown := plainly(delivering(), 140, 100)
	require.Regexp(t, `✓ Writer +round 3, 1 file changed +1s +\$0\.42 │`, shown)
	require.Regexp(t, `✓ Publisher {10,}1s +\$0\.05 │`, shown, "a stage without a loop has no rounds")
	at := map[int]bool{}
	for line := range strings.Lines(shown) {
		if i := strings.Index(line, " 1s "); i >= 0 {
			at[len([]rune(line[:i]))] = true
		}
	}
	require.Len(t, at, 1, shown)
	require.Contains(t, shown, "42s + 3m 0s paused")
	require.NotContains(t, shown, "projected", "nothing remains to be spent")
}

func plainly(s Scene, width, height int) string {
	return codes.ReplaceAllString(Render(s, width, height, true), "")
}

// TestPanelsKeepTheirPlace compares the first lines of the panels while a call runs, between two calls, and in a loop.
func TestPanelsKeepTheirPlace(t *testing.T) {
	calls := []figures.InFlightCall{{Step: "writer", Role: "writer", Attempt: 1, Elapsed: time.Second}}
	for _, size := range [][2]int{{80, 24}, {80, 50}, {140, 24}, {140, 30}, {140, 40}} {
		var places [][]int
		for _, row := range []struct {
			calls []figures.InFlightCall
			round int
		}{{calls, 0}, {nil, 0}, {calls, 2}, {nil, 2}} {
			s := delivering()
			s.Status, s.State.Status, s.Question = run.Running, run.Running, nil
			s.Figures.InFlight, s.Figures.Progress.Round = row.calls, row.round
			if row.round > 0 {
				s.Figures.Progress.Max = 3
			}
			var at []int
			for i, line := range strings.Split(plainly(s, size[0], size[1]), "\n") {
				for _, title := range []string{"Current", "Timing", "Cost", "Quality", "Stages"} {
					if strings.Contains(line, title) {
						at = append(at, i)
					}
				}
			}
			places = append(places, at)
		}
		for _, at := range places {
			require.Equal(t, places[0], at, "%v", size)
		}
	}
}

func TestLowScreenShowsOutput(t *testing.T) {
	for _, size := range [][2]int{{130, 24}, {140, 24}} {
		s := delivering()
		s.Status, s.State.Status, s.Question = run.Running, run.Running, nil
		s.Figures.InFlight = []figures.InFlightCall{{Step: "writer", Role: "writer", Attempt: 1, Elapsed: time.Second}}
		s.Figures.Settled = append(s.Figures.Settled, s.Figures.Settled...)
		s.Output = Output{Who: "writer", Lines: []string{"line 1", "line 2", "line 3"}}
		require.Contains(t, plainly(s, size[0], size[1]), "line 3", "%v", size)
	}
}

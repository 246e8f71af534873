package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

func TestWaitingScreenShowsQuestionAndEveryChoice(t *testing.T) {
	for width := 70; width <= 160; width += 10 {
		for height := 20; height <= 60; height += 5 {
			shown := plainly(delivering(), width, height)
			words := strings.Join(strings.Fields(strings.ReplaceAll(shown, "│", " ")), " ")
			require.Contains(t, words, "What should happen to the changes?", "%dx%d", width, height)
			for i, c := range delivering().Question.Choices() {
				first, _, _ := strings.Cut(c.Meaning, " ")
				require.Regexp(t, fmt.Sprintf(`(?m)^\W*%d  %s +%s`, i+1, run.ActionWords(c.Action), first), shown, "%dx%d", width, height)
			}
		}
	}
}

func TestScreenShowsEveryRole(t *testing.T) {
	for _, width := range []int{70, 80, 110, 130, 140} {
		shown := plainly(delivering(), width, 100)
		for _, role := range []string{"Author: $0.11", "Writer: $1.26", "Editor: unknown", "Publisher: $0.05"} {
			require.Contains(t, shown, role, width)
		}
	}
}

func plainly(s Scene, width, height int) string {
	return codes.ReplaceAllString(draw(s, width, height, true), "")
}

// TestPanelsKeepTheirPlace compares the first lines of the panels while a call runs, between two calls, and in a loop.
func TestPanelsKeepTheirPlace(t *testing.T) {
	calls := []view.InFlightCall{{Step: "writer", Role: "writer", Attempt: 1, Elapsed: time.Second}}
	for _, size := range [][2]int{{80, 24}, {80, 50}, {140, 24}, {140, 30}, {140, 40}} {
		var places [][]int
		for _, row := range []struct {
			calls []view.InFlightCall
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
		s.Figures.InFlight = []view.InFlightCall{{Step: "writer", Role: "writer", Attempt: 1, Elapsed: time.Second}}
		s.Figures.Settled = append(s.Figures.Settled, s.Figures.Settled...)
		s.Output = Output{Who: "writer", Lines: []string{"line 1", "line 2", "line 3"}}
		require.Contains(t, plainly(s, size[0], size[1]), "line 3", "%v", size)
	}
}

package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestRedoCountsRepeatedPasses from those that are done for the first time, whatever a decision goes back over.
func TestRedoCountsRepeatedPasses(t *testing.T) {
	at := func(stage, round, step int) *run.Place { return &run.Place{Stage: stage, Round: round, Step: step} }
	type decision struct {
		from, to *run.Place
		redo     string
	}
	for _, row := range []struct {
		name      string
		decisions []decision
		places    map[run.Place]int
	}{
		{"none", nil, map[run.Place]int{*at(0, 1, 0): 0}},
		{"onward", []decision{{at(0, 1, 1), at(0, 1, 2), ""}}, map[run.Place]int{*at(0, 1, 1): 0, *at(0, 1, 2): 0}},
		{"a step back, twice", []decision{{at(0, 1, 1), at(0, 1, 0), run.RedoStep},
			{at(0, 1, 1), at(0, 1, 0), run.RedoStep}},
			map[run.Place]int{*at(0, 1, 0): 2, *at(0, 1, 1): 2, *at(0, 1, 2): 0, *at(1, 1, 0): 0}},
		{"a gate", []decision{{at(0, 1, 1), nil, run.RedoStep}}, map[run.Place]int{*at(0, 1, 1): 1, *at(0, 1, 2): 0}},
		{"over stages", []decision{{at(3, 1, 0), at(1, 1, 1), run.RedoStep}},
			map[run.Place]int{*at(0, 1, 0): 0, *at(1, 1, 1): 1, *at(2, 1, 0): 1, *at(2, 7, 0): 1}},
		{"a new round of a loop", []decision{{at(2, 1, 0), at(0, 4, 0), run.RedoRound}},
			map[run.Place]int{*at(0, 3, 0): 1, *at(0, 4, 0): 0, *at(0, 4, 1): 0, *at(1, 1, 0): 1}},
		{"a step of that round", []decision{{at(2, 1, 0), at(0, 4, 0), run.RedoRound},
			{at(0, 4, 1), at(0, 4, 0), run.RedoStep}},
			map[run.Place]int{*at(0, 4, 0): 2, *at(0, 4, 2): 0, *at(1, 1, 0): 1}},
		{"a stream that makes no sense", []decision{{at(0, 1, 0), at(-1<<40, 1, 0), run.RedoStep},
			{at(1<<40, 1, 0), at(0, 1, 0), run.RedoStep}},
			map[run.Place]int{*at(0, 1, 0): 0}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := run.State{Status: run.Running}
			for _, d := range row.decisions {
				s.Next, s.Status = *d.from, run.AwaitingGateDecision
				s.Questions = []run.Question{{Kind: run.QuestionGate, ID: "q"}}
				raw, err := run.Payload(run.QuestionDecided{ID: "q", Action: run.ActionRetry, Next: d.to, Redo: d.redo})
				require.NoError(t, err)
				s = run.Apply(s, run.Event{Kind: run.KindGateDecided, Payload: raw})
				require.Empty(t, s.InvalidTransition)
			}
			for place, want := range row.places {
				s.Next = place
				require.Equal(t, want, s.Redo(), "%+v", place)
			}
		})
	}
}

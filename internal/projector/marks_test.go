package projector

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestRoundStart names the states before rounds in a run whose batches close a round and open the next one.
func TestRoundStart(t *testing.T) {
	stages := []run.StageRef{{Name: "plan", Kind: "once"}, {Name: "work", Kind: "repeat", Rounds: 3},
		{Name: "end", Kind: "once"}}
	in := func(phase string, round int) run.State { return run.State{Stages: stages, Phase: phase, Round: round} }
	states := []run.State{in("", 0), in("plan", 1), in("work", 1), in("work", 1), in("work", 2), in("work", 2),
		in("end", 1)}
	find := func(id string, states []run.State) int {
		var r roundStart
		for i := len(states) - 1; i >= 0; i-- {
			if r.is(id, states[i]) {
				return i
			}
		}
		return -1
	}
	for id, want := range map[string]int{
		"round-1": 1, "round-2": 3, "round-3": 5, "round-0": -1, "round-x": -1, "pass-1": -1,
	} {
		require.Equal(t, want, find(id, states), id)
	}
	require.Equal(t, -1, find("round-2", states[:4]), "the run has not begun it")
	require.Equal(t, 0, find("round-1", []run.State{in("", 0), in("work", 1)}))
	require.Equal(t, -1, find("round-1", []run.State{{Phase: "work", Round: 1}}), "an earlier version named no stages")
}

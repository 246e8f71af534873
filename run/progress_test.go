package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPositionOfARun(t *testing.T) {
	stages := []StageRef{{Name: "plan"}, {Name: "work", Rounds: 3}}
	for want, s := range map[string]State{
		"2 stages":            {Status: Done},
		"2 stages, 1 round":   {Status: Done, Rounds: 1},
		"stage 0 of 2":        {Status: Running},
		"stage 1 of 2 (plan)": {Status: Failed, Phase: "plan", Rounds: 1},
		"stage 2 of 2 (work), round 2 of at most 3": {Status: Running, Phase: "work", Round: 2, Rounds: 1},
	} {
		s.Wording, s.Stages = WordingStages, stages
		require.Equal(t, want, s.Progress())
		s.Verdict = "approved"
		require.Equal(t, want+", verdict approved", s.Progress())
	}
	s := State{Status: Running, Phase: "work", Wording: WordingStages, Stages: stages, Round: 1, Verdict: "approved",
		Lanes: &Lanes{Count: 3, Done: 1}}
	require.Equal(t, "stage 2 of 2 (work), round 1 of at most 3, 1 of 3 lanes done", s.Progress())
}

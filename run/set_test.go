package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestSetText describes the set of a run as requirement 002 §9.1 does.
func TestSetText(t *testing.T) {
	stages := []run.StageRef{{Name: "corpus", Sets: []string{"S1", "S2"}}, {Name: "polish"}}
	for want, s := range map[string]run.State{
		"S1 pending":               {Stages: stages, Next: run.Place{Round: 1}},
		"S1":                       {Stages: stages, Next: run.Place{Round: 1}, Set: "S1"},
		"S1 completed, S2 pending": {Stages: stages, Next: run.Place{Round: 2}},
		"S2 completed":             {Stages: stages, Next: run.Place{Round: 3}},
		"":                         {Stages: stages, Next: run.Place{Stage: 1, Round: 1}},
	} {
		require.Equal(t, want, s.SetText())
	}
	require.Empty(t, run.State{Next: run.Place{Stage: 2}}.SetText())
}

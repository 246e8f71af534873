package operations

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

func TestRunWithoutThePlanIsRefusedAsInput(t *testing.T) {
	def := Definition{Plan: &pipeline.Plan{Stages: []pipeline.PlanStage{{Name: "plan"}, {Name: "implement"}}}}
	f := &Follow{Claim: run.Claim{RunID: "run-1"}}
	var refused *SourceError
	require.ErrorAs(t, f.skip(def, run.History{Completed: []run.PhaseMark{{Phase: "other"}}}, nil), &refused)
	require.EqualError(t, refused, "run run-1: it has not completed the first stage of this pipeline, plan: there is "+
		"no plan to start with; nothing was started")
	require.NoError(t, f.skip(def, run.History{Completed: []run.PhaseMark{{Phase: "plan"}}}, nil))
	require.Equal(t, 1, f.From.Stage)
}

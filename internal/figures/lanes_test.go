package figures_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/figures"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// The projected cost counts the calls that lanes still make; the share of stages counts the lanes that have ended.
func TestFiguresCountLanes(t *testing.T) {
	steps := []pipeline.PlanStep{{Kind: pipeline.KindRole, Role: "implementer"}, {Kind: pipeline.KindRun},
		{Kind: pipeline.KindTogether, Members: []string{"a", "b"}}}
	plan := &pipeline.Plan{Stages: []pipeline.PlanStage{{Kind: pipeline.StageLanes,
		Rounds: []pipeline.PlanRound{{Steps: steps}}}, {}}}
	lanes := &run.Lanes{Count: 10, Begun: 4, Done: 1, Failed: 1, Active: []run.Lane{{Index: 2, Step: 2}, {Index: 3}}}
	s := figures.Source{Plan: plan, State: run.State{Status: run.Running, Wording: run.WordingStages, Lanes: lanes},
		Records: rundir.PipelineState{Cost: rundir.CostTracker{TotalEstimatedCostUSD: 5,
			ByRole: map[string]rundir.RoleCost{"implementer": {CostUSD: 5, PassCount: 10}}}}}
	require.InDelta(t, 5+0.5*(6*4+2+4), *figures.Projected(s), 1e-9, "six lanes of four calls, and those of two lanes")
	require.Equal(t, 10, figures.StagesPercent(s.State, 0, 2))
	require.Equal(t, 60, figures.StagesPercent(s.State, 1, 2))
	s.State.Lanes = nil
	require.Equal(t, 50, figures.StagesPercent(s.State, 1, 2))
	require.InDelta(t, 5, *figures.Projected(s), 1e-9)
}

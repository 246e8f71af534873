package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

func TestLimitOfFailure(t *testing.T) {
	reset := time.Date(2026, 11, 25, 14, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		failure agent.Failure
		want    *run.Limit
	}{
		"a usage limit": {agent.Failure{Category: run.CategoryRateLimit, Cause: run.LimitPlan, Until: reset},
			&run.Limit{Kind: run.LimitPlan, Reset: "2026-11-25T14:00:00.000Z"}},
		"an overload": {agent.Failure{Category: run.CategoryRateLimit, Cause: run.LimitOverload},
			&run.Limit{Kind: run.LimitOverload}},
		"no connection": {agent.Failure{Category: run.CategoryUnreachable, Cause: run.LimitUnreachable},
			&run.Limit{Kind: run.LimitUnreachable}},
		"no login": {agent.Failure{Category: run.CategoryAgentExit, Cause: run.LimitLogin},
			&run.Limit{Kind: run.LimitLogin}},
		"too long an answer": {agent.Failure{Category: run.CategoryOutputTruncated, Cause: run.LimitOutput}, nil},
		"another failure":    {agent.Failure{Category: run.CategoryAgentExit}, nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, row.want, limitOf(&row.failure)) })
	}
}

// TestFallbackAgentIsAsked reads the plan for a call of another agent.
func TestFallbackAgentIsAsked(t *testing.T) {
	plan := &pipeline.Plan{
		Agents: []pipeline.Agent{{Run: []string{"claude", "-p"}}, {Name: "other", Run: []string{"/opt/codex", "exec"}}},
		Roles:  []pipeline.Role{{Name: "writer", Limits: pipeline.Limits{Fallback: []string{"other"}}}},
		Stages: []pipeline.PlanStage{{Name: "one", Kind: pipeline.StageOnce, Rounds: []pipeline.PlanRound{{
			Steps: []pipeline.PlanStep{{Key: "001", Kind: pipeline.KindRole, Role: "writer"}}}}}},
	}
	r := must(round(plan, contract.RoundInput{Round: 1}))(t)
	require.Equal(t, []contract.FallbackAgent{{Name: "other", Agent: "codex", Program: "/opt/codex"}},
		r.Steps[0].Roles[0].Fallback)
	for name, want := range map[string]string{"": "claude", "other": "/opt/codex"} {
		_, _, step, role, err := find(plan, contract.StepRef{Round: 1, Agent: name})
		require.NoError(t, err)
		ag, ok := agentOf(plan, step, role)
		require.True(t, ok)
		require.Equal(t, want, ag.Run[0])
	}
}

package activities

import (
	"context"
	"fmt"
	"path"
	"slices"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/workflows/contract"
)

// ReadRound reads one round of a stage from the stored plan.
func (a *Activities) ReadRound(ctx context.Context, in contract.RoundInput) (contract.Round, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.Round{}, err
	}
	plan, err := a.plan(ctx, s, in.Plan)
	if err != nil {
		return contract.Round{}, err
	}
	if in.Stage < 0 || in.Stage >= len(plan.Stages) {
		return contract.Round{}, badInput("the plan has %d stages, not %d", len(plan.Stages), in.Stage+1)
	}
	a.cfg.Needs(in.Store, plan.Programs())
	return round(plan, in)
}

func badInput(format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), contract.ErrBadInput, nil)
}

func round(plan *pipeline.Plan, in contract.RoundInput) (contract.Round, error) {
	stage := plan.Stages[in.Stage]
	pr := stage.RoundAt(in.Round)
	r := contract.Round{
		Stages: len(plan.Stages), Stage: stage.Name, Title: stage.Title, PauseAfter: stage.PauseAfter, Gate: stage.Gate,
		When: stage.When, Needs: stage.Needs, GateNeeds: stage.GateNeeds, Threshold: stage.Threshold,
		Kind: stage.Kind, Lanes: stage.Lanes, Repeat: stage.Repeat, Set: pr.Set,
		Dir: pipeline.Fill(stage.Dir, pr.Set, in.Round), Checkpoint: pipeline.Fill(pr.Checkpoint, pr.Set, in.Round),
	}
	if stage.Repeat == nil {
		r.Rounds = len(stage.Rounds)
	}
	for _, ps := range pr.Steps {
		step, err := stepOf(plan, ps)
		if err != nil {
			return r, err
		}
		r.Steps = append(r.Steps, step)
	}
	for _, ps := range pr.Fresh {
		step, err := stepOf(plan, ps)
		if err != nil {
			return r, err
		}
		r.Fresh = append(r.Fresh, step)
	}
	return r, nil
}

func stepOf(plan *pipeline.Plan, ps pipeline.PlanStep) (contract.Step, error) {
	step := contract.Step{PlanStep: ps}
	step.Gets, step.OrderLabel = nil, "" // for prompts only
	names := ps.Members
	if ps.Role != "" {
		names = []string{ps.Role}
	}
	if ps.Kind == pipeline.KindRun {
		step.Roles = []contract.Role{{
			Name: pipeline.CommandRole, Gives: pipeline.GivesOutcome, Agent: pipeline.Shell, Program: pipeline.Shell,
			Limits: *ps.Limits, ID: ps.ID, Keep: slices.Contains(plan.Kept, ps.ID),
		}}
	}
	for _, name := range names {
		role, ok := plan.Role(name)
		if !ok {
			return step, badInput("the plan has no role %q", name)
		}
		r := contract.Role{
			Name: name, Gives: role.Gives, Notes: role.Notes, Agent: agentName(plan, role.Agent),
			Limits: plan.RoleLimits(ps, name), Schema: role.Schema, Uses: role.Uses,
		}
		if r.ID = ps.ID; ps.Kind == pipeline.KindTogether || r.ID == "" && role.Once {
			r.ID = name
		}
		r.Keep = slices.Contains(plan.Kept, r.ID)
		r.Lists = slices.ContainsFunc(plan.Stages, func(s pipeline.PlanStage) bool { return s.Lanes != nil && s.Lanes.From == ps.Key })
		if role.Score != nil {
			r.Score = role.Score.Name
		}
		if r.HasVerdict = role.Judges(); r.HasVerdict {
			r.Approval = role.Approval()
		}
		r.Program = programToRun(plan, role.Agent)
		for _, name := range r.Limits.Fallback {
			r.Fallback = append(r.Fallback, contract.FallbackAgent{
				Name: name, Agent: agentName(plan, name), Program: programToRun(plan, name),
			})
		}
		step.Roles = append(step.Roles, r)
	}
	return step, nil
}

// programToRun returns the first word of an agent's command.
func programToRun(plan *pipeline.Plan, name string) string {
	if ag, _ := plan.Agent(name); len(ag.Run) > 0 {
		return ag.Run[0]
	}
	return ""
}

// agentName returns the display name of an agent.
func agentName(plan *pipeline.Plan, name string) string {
	ag, _ := plan.Agent(name)
	switch {
	case len(ag.Run) == 0:
		return "agent"
	case isScripted(ag), programOf(ag) == "claude":
		return "claude -p" // the built-in agent replies like claude
	}
	return path.Base(ag.Run[0])
}

// programOf returns the program whose output an agent's adapter reads; empty: any.
func programOf(ag pipeline.Agent) string {
	a, _ := adapter.Find(ag.Reply)
	return a.Program
}

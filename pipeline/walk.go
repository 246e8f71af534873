package pipeline

import (
	"slices"

	"github.com/passbook-run/passbook/internal/adapter"
)

// Role returns the role of that name.
func (p *Plan) Role(name string) (Role, bool) {
	i := slices.IndexFunc(p.Roles, func(r Role) bool { return r.Name == name })
	if i < 0 {
		return Role{}, false
	}
	return p.Roles[i], true
}

// Agent returns the agent of that name; "" is the default one.
func (p *Plan) Agent(name string) (Agent, bool) {
	i := slices.IndexFunc(p.Agents, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return p.Agents[i], true
}

// Sessions reports whether the agent can continue its sessions.
func (a Agent) Sessions() bool {
	kind, _ := adapter.Find(a.Reply)
	if kind.Resume == nil {
		return false
	}
	_, ok := kind.Resume(a.Run, "session")
	return ok
}

// ReplyOf returns the form of the output of a role's call in a step.
func (p *Plan) ReplyOf(step PlanStep, role string) string {
	if step.Kind == KindRun {
		return adapter.Text
	}
	r, _ := p.Role(role)
	a, _ := p.Agent(r.Agent)
	return a.Reply
}

// Shell is the program that runs the commands of steps.
const Shell = "sh"

// Programs lists the programs that the plan's calls start, each once: those of its agents, and the shell.
func (p *Plan) Programs() []string {
	var out []string
	add := func(program string) {
		if !slices.Contains(out, program) {
			out = append(out, program)
		}
	}
	for _, a := range p.Agents {
		if len(a.Run) > 0 {
			add(a.Run[0])
		}
	}
	for _, stage := range p.Stages {
		for _, round := range stage.Rounds {
			if slices.ContainsFunc(round.Steps, func(s PlanStep) bool { return s.Kind == KindRun }) {
				add(Shell)
			}
		}
	}
	return out
}

// CommandEnv lists the variables that commands of steps and of the setup may read besides the usual ones.
func (p *Plan) CommandEnv() []string {
	var names []string
	if p.Workspace != nil {
		names = append(names, p.Workspace.Env...)
	}
	for _, stage := range p.Stages {
		for _, round := range stage.Rounds {
			for _, step := range round.Steps {
				names = append(names, step.Env...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// RoleLimits returns the limits of a role's call in a step: those of the step if it has any, else those of the role.
func (p *Plan) RoleLimits(step PlanStep, role string) Limits {
	if step.Limits != nil {
		return step.Limits.Complete()
	}
	r, _ := p.Role(role)
	return r.Limits.Complete()
}

// PartsOf lists the parts of a role's prompt in a step. In a group, a member can have more parts than step.Gets: those
// that its own template places.
func (p *Plan) PartsOf(step PlanStep, role string) []string {
	r, _ := p.Role(role)
	return inOrder(append(slices.Clone(step.Gets), r.Places...))
}

// RoundAt returns round n of the stage, from 1. In a repeated stage every round is the template with {n} still to be
// filled in, also beyond the maximum, because an operator may ask for more rounds. A round that does not exist is
// empty.
func (s PlanStage) RoundAt(n int) PlanRound {
	switch {
	case n < 1:
		return PlanRound{}
	case s.Kind == StageRepeat:
		return s.Rounds[0]
	case n > s.MaxRounds():
		return PlanRound{}
	default:
		return s.Rounds[n-1]
	}
}

// SetNames lists the sets of a stage over sets, in the order of its rounds.
func (s PlanStage) SetNames() []string {
	var names []string
	for _, round := range s.Rounds {
		if round.Set != "" {
			names = append(names, round.Set)
		}
	}
	return names
}

// RoleNames lists the roles that the stage calls, each once.
func (s PlanStage) RoleNames() []string {
	var names []string
	for _, round := range s.Rounds {
		for _, step := range round.Steps {
			for _, name := range append([]string{step.Role}, step.Members...) {
				if name != "" && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// MaxRounds returns the maximum number of rounds of the stage.
func (s PlanStage) MaxRounds() int {
	if s.Kind == StageRepeat {
		return s.Repeat.Max
	}
	return len(s.Rounds)
}

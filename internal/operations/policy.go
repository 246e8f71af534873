package operations

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// Policy is what a run is allowed, as stored when it starts. Its digest is the run's policy_snapshot_id.
type Policy struct {
	Version    int              `json:"version"`
	Agents     []pipeline.Agent `json:"agents"`
	Budget     pipeline.Budget  `json:"budget"`
	Env        []string         `json:"env,omitempty"` // variables that commands may read
	Definition string           `json:"definition"`    // digest
}

// PolicyError lists the differences between a run and today's settings (requirement 003 §6). Nothing was started or
// changed.
type PolicyError struct{ Differences []string }

func (e *PolicyError) Error() string {
	return "the settings do not allow it: " + strings.Join(e.Differences, "; ")
}

// Allowed compares a policy with the settings; cap is the current budget of the run in USD. The error is a
// *PolicyError with every difference.
func (p Policy) Allowed(s config.Settings, cap float64) error {
	var all []string
	programs, names := s.Policy.Agents, s.Policy.Env
	for _, a := range p.Agents {
		program := "(none)"
		if len(a.Run) > 0 {
			program = filepath.Base(a.Run[0])
		}
		if len(programs) > 0 && !slices.Contains(programs, program) {
			all = append(all, fmt.Sprintf("agent %s calls %s, and policy.agents has %s", a.Name, program,
				strings.Join(programs, ", ")))
		}
		for _, name := range a.Env {
			if len(names) > 0 && !slices.Contains(names, name) {
				all = append(all, fmt.Sprintf("agent %s sees the variable %s, and policy.env has %s", a.Name, name,
					strings.Join(names, ", ")))
			}
		}
	}
	for _, name := range p.Env {
		if len(names) > 0 && !slices.Contains(names, name) {
			all = append(all, fmt.Sprintf("a command sees the variable %s, and policy.env has %s", name,
				strings.Join(names, ", ")))
		}
	}
	switch most := s.Policy.Budget; {
	case most > 0 && cap <= 0:
		all = append(all, fmt.Sprintf("it has no budget, and policy.budget_usd is %.2f", most))
	case most > 0 && cap > most:
		all = append(all, fmt.Sprintf("its budget is %.2f USD, and policy.budget_usd is %.2f", cap, most))
	}
	if len(all) == 0 {
		return nil
	}
	return &PolicyError{Differences: all}
}

// mayChange compares the changes of a fork with the settings.
func mayChange(s config.Settings, wanted []string) error {
	var all []string
	for _, what := range wanted {
		if slices.Contains(s.Policy.Forbid, what) {
			all = append(all, fmt.Sprintf("a fork may not change the %s (policy.forbid has %s)", what,
				strings.Join(s.Policy.Forbid, ", ")))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &PolicyError{Differences: all}
}

// mayForce checks whether the settings allow force.
func mayForce(s config.Settings) error {
	if !slices.Contains(s.Policy.Forbid, "force") {
		return nil
	}
	return &PolicyError{Differences: []string{"nothing may be forced (policy.forbid has force)"}}
}

// policyOf returns the requests of a plan with a budget.
func policyOf(p *pipeline.Plan, definition string, cap run.Budget) Policy {
	b := p.Budget
	b.USD = cap.CapUSD
	return Policy{Version: 1, Agents: p.Agents, Budget: b, Env: p.CommandEnv(), Definition: definition}
}

package operations

import (
	"fmt"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/pipeline"
)

// SandboxWarnings lists what a plan's calls cannot have on this host: a sandbox that was asked for, or the default.
func SandboxWarnings(plan *pipeline.Plan, s config.Settings, host sandbox.Host) []string {
	if host.Problem == "" {
		return nil
	}
	var out []string
	open := false
	check := func(what string, c pipeline.Confinement) {
		held, err := sandbox.Decide(sandbox.Request{Mode: c.Sandbox, Default: s.Sandbox.Mode, Network: c.Network}, host)
		if err != nil {
			out = append(out, fmt.Sprintf("%s cannot start on this host: %v", what, err))
		}
		open = open || held.Why != ""
	}
	for _, a := range plan.Agents {
		check("agent "+a.Name, a.Confinement)
	}
	for _, stage := range plan.Stages {
		for _, step := range stage.Rounds[0].Steps {
			if step.Kind == pipeline.KindRun {
				check("the command of step "+step.Key, step.Confinement)
			}
		}
	}
	if open {
		out = append(out, fmt.Sprintf("calls run without a sandbox on this host: %s; %s", host.Problem, host.Fix))
	}
	return out
}

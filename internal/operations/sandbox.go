package operations

import (
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/allow"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/pipeline"
)

// hold decides what restricts a process, by the settings of a host.
func hold(c pipeline.Confinement, s config.Sandbox, host sandbox.Host) (sandbox.Held, error) {
	return sandbox.Decide(sandbox.Request{Mode: c.Sandbox, Network: c.Network, OfHost: s.Mode, Offered: s.Network}, host)
}

// withoutSandbox lists what no process of a plan can have on this host, each cause once: without a sandbox, no process
// starts unless the settings say so.
func (d Definition) withoutSandbox(s config.Sandbox, host sandbox.Host) (all pipeline.Problems) {
	var causes []string
	for _, p := range d.confined() {
		if p.agent != nil && allow.Alone(*p.agent, s.Mode, host).Sandbox == sandbox.Own {
			continue
		}
		if _, err := hold(p.Confinement, s, host); err != nil && !slices.Contains(causes, err.Error()) {
			causes = append(causes, err.Error())
			all = append(all, d.problem(p.at, "cannot start: "+err.Error()))
		}
	}
	return all
}

// confined is what restricts a process of a plan, and where the definition has the process.
type confined struct {
	pipeline.Confinement
	at    []string
	agent *pipeline.Agent // nil: it is a command
}

func (d Definition) confined() (all []confined) {
	for _, a := range d.Plan.Agents {
		at := []string{"agent"}
		if a.Name != "" {
			at = []string{"agents", a.Name}
		}
		all = append(all, confined{a.Confinement, at, &a})
	}
	for _, stage := range d.Plan.Stages {
		for _, step := range stage.Rounds[0].Steps {
			if step.Kind == pipeline.KindRun {
				all = append(all, confined{step.Confinement, []string{"stages"}, nil})
			}
		}
	}
	for _, n := range d.Plan.Notify {
		if len(n.Run) > 0 {
			all = append(all, confined{n.Confinement, []string{"notify"}, nil})
		}
	}
	return all
}

// SandboxWarnings lists what the settings of this host and variables of its user open for the processes of a plan.
func (d Definition) SandboxWarnings(s config.Sandbox, environ []string) (all []string) {
	open, network := false, false
	for _, p := range d.confined() {
		held, err := hold(p.Confinement, s, sandbox.Host{Isolation: true})
		open = open || err == nil && held.Mode == sandbox.None && p.Sandbox == ""
		network = network || err == nil && held.Isolated() && len(held.Addresses()) > 0
	}
	if open {
		all = append(all, "calls run without a sandbox, as sandbox.mode of the settings allows: they may do all that you may")
	}
	if named := sandbox.Named(environ); network && len(named) > 0 {
		all = append(all, fmt.Sprintf("calls reach %s too: variables of this terminal name them",
			strings.Join(named, ", ")))
	}
	return all
}

// AsCalled returns the plan with its agents as this host calls them.
func (d Definition) AsCalled(s config.Sandbox) *pipeline.Plan {
	p, host := *d.Plan, sandbox.Examine()
	p.Agents = slices.Clone(p.Agents)
	for i, a := range p.Agents {
		p.Agents[i] = allow.Alone(a, s.Mode, host)
	}
	return &p
}

// withoutSandboxHere lists what withoutSandbox does, if this host makes the calls.
func (o Operator) withoutSandboxHere(def Definition) pipeline.Problems {
	if !o.Settings.LocalStore() {
		return nil
	}
	return def.withoutSandbox(o.Settings.Sandbox, sandbox.Examine())
}

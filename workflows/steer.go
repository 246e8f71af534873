package workflows

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// validateSteer requires an instruction for a role that the plan has.
func (c *control) validateSteer(m contract.Message) error {
	s := c.e.j.state
	switch _, err := run.ParseInstruction(m.Text); {
	case strings.TrimSpace(m.Text) == "":
		return refuse(`the instruction is empty: send {"text":"…"}`)
	case err != nil:
		return refuse("%v", err)
	case s.SteeringFull():
		return unmet("%d instructions wait for their prompts, which is the maximum: send this one when a prompt has used "+
			"one of them", run.MaxInstructions)
	}
	if roles := c.e.in.Start.RolesFrom(s.Next.Stage); m.Role != "" && len(roles) > 0 && !slices.Contains(roles, m.Role) {
		return refuse("the pipeline has no role %q from here on; its roles are %s", m.Role, strings.Join(roles, ", "))
	}
	return nil
}

// steer records an instruction. With now the running calls are interrupted, and their steps begin again with it.
func (c *control) steer(ctx workflow.Context, m contract.Message) (contract.Ack, error) {
	now := m.Now && c.e.interrupts(m.Role)
	ev := run.RunSteered{
		Role: m.Role, Text: strings.TrimSpace(m.Text), By: m.By, Note: m.Note, Now: now,
	}
	if err := c.record(ctx, run.KindRunSteered, ev); err != nil {
		return contract.Ack{}, err
	}
	c.e.tellLanes(ctx, contract.VerbSteer, contract.Message{Text: m.Text, Role: m.Role, Now: m.Now})
	switch {
	case now:
		for _, call := range c.e.calls { // others begin next, and see the instruction then
			if call.pass.interruptible(m.Role) {
				call.cancel()
			}
		}
		return c.ack("interrupting the running call, which continues with the instruction"), nil
	case m.Now:
		return c.ack("no call is running; the next prompt contains the instruction"), nil
	}
	return c.ack("the next prompt contains the instruction"), nil
}

// interrupts reports whether an instruction for a role finds a call that it interrupts: one that runs, also on a full
// disk, or that begins next.
func (e *engine) interrupts(role string) bool {
	running := func(c runningCall) bool { return c.pass.interruptible(role) }
	begins := func(p *pass) bool { return p.interruptible(role) }
	return slices.ContainsFunc(e.calls, running) ||
		e.j.state.Status == run.Running && slices.ContainsFunc(e.passes, begins)
}

// interruptible reports whether an instruction for a role may interrupt the call of the pass. A command has no prompt.
func (p *pass) interruptible(role string) bool {
	return p.step.Kind != pipeline.KindRun && p.result == nil && (role == "" || role == p.role.Name)
}

// overtaken reports whether an instruction that interrupts the call arrived after its prompt was composed.
func (p *pass) overtaken() bool {
	s := p.e.j.state
	missing := func(i run.Instruction) bool {
		return i.Now && !slices.ContainsFunc(p.steering, func(in run.Instruction) bool { return in.ID == i.ID })
	}
	return s.Status == run.Running && p.interruptible("") &&
		slices.ContainsFunc(s.InstructionsFor(p.role.Name, p.callID), missing)
}

// interrupting lists the instructions in the prompt for which a call was interrupted: its session continues with them.
func (p *pass) interrupting() []string {
	var all []string
	for _, i := range p.steering {
		if i.Now {
			all = append(all, i.Text)
		}
	}
	return all
}

// addInstructions adds the instructions of operators to a prompt before it is composed. A command has none.
func (p *pass) addInstructions() {
	if p.step.Kind == pipeline.KindRun {
		return
	}
	p.steering, p.context.Steering, p.context.Recorded = nil, nil, nil
	if p.e.j.state.Status == run.Replaying {
		p.context.Recorded = p.e.in.Start.Instructions
		return
	}
	p.steering = p.e.j.state.InstructionsFor(p.role.Name, p.nextCallID())
	for _, i := range p.steering {
		p.context.Steering = append(p.context.Steering, i.Text)
	}
}

package workflows

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// validateSteer requires an instruction for a role that the plan has.
func (c *control) validateSteer(m Message) error {
	s := c.e.j.state
	switch _, err := run.ParseInstruction(m.Text); {
	case strings.TrimSpace(m.Text) == "":
		return refuse(`the instruction is empty: send {"text":"…"}`)
	case err != nil:
		return refuse("%v", err)
	case s.SteeringFull():
		return unmet("%d instructions wait for their prompts: pause the run, or wait until one is used",
			run.MaxInstructions)
	}
	if roles := c.e.in.Start.RolesFrom(s.Next.Stage); m.Role != "" && len(roles) > 0 && !slices.Contains(roles, m.Role) {
		return refuse("the pipeline has no role %q from here on; its roles are %s", m.Role, strings.Join(roles, ", "))
	}
	return nil
}

// steer records an instruction. With now the running calls are interrupted, and their steps begin again with it.
func (c *control) steer(ctx workflow.Context, m Message) (Ack, error) {
	now := m.Now && len(c.e.callsOf(m.Role)) > 0
	ev := run.RunSteered{
		Role: m.Role, Text: strings.TrimSpace(m.Text), By: m.By, Auth: m.auth, Note: m.Note, Now: now,
	}
	if err := c.record(ctx, run.KindRunSteered, ev); err != nil {
		return Ack{}, err
	}
	switch {
	case now:
		c.e.cancelCalls(m.Role)
		return c.ack("interrupting the running call, which continues with the instruction"), nil
	case m.Now:
		return c.ack("no call is running; the next prompt contains the instruction"), nil
	}
	return c.ack("the next prompt contains the instruction"), nil
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

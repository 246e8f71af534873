package workflows

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// validateSteer requires an instruction for a role that the plan has.
func (hs *handlers) validateSteer(m contract.Message) error {
	s := hs.state()
	switch _, err := run.ParseInstruction(m.Text); {
	case strings.TrimSpace(m.Text) == "":
		return refuse(`the instruction is empty: send {"text":"…"}`)
	case err != nil:
		return refuse("%v", err)
	case s.SteeringFull():
		return unmet("%d instructions wait for their prompts, which is the maximum: send this one when a prompt has used "+
			"one of them", run.MaxInstructions)
	}
	if roles := hs.in.Start.RolesFrom(s.Next.Stage); m.Role != "" && len(roles) > 0 && !slices.Contains(roles, m.Role) {
		return refuse("the pipeline has no role %q from here on; its roles are %s", m.Role, strings.Join(roles, ", "))
	}
	return nil
}

// steer records an instruction. With now the running calls are interrupted, and their steps begin again with it.
func (hs *handlers) steer(ctx workflow.Context, m contract.Message) (contract.Ack, error) {
	now := m.Now && hs.running.interrupts(m.Role)
	ev := run.RunSteered{
		Role: m.Role, Text: strings.TrimSpace(m.Text), By: m.By, Note: m.Note, Now: now,
	}
	if err := hs.record(ctx, run.KindRunSteered, ev); err != nil {
		return contract.Ack{}, err
	}
	hs.children.tellLanes(ctx, contract.VerbSteer, contract.Message{Text: m.Text, Role: m.Role, Now: m.Now})
	switch {
	case now:
		// others begin next, and see the instruction then
		hs.running.cancel(func(c *call) bool { return c.interruptible(m.Role) })
		return hs.ack("interrupting the running call, which continues with the instruction"), nil
	case m.Now:
		return hs.ack("no call is running; the next prompt contains the instruction"), nil
	}
	return hs.ack("the next prompt contains the instruction"), nil
}

package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
)

// grants are those that the run's inputs use.
func (e *engine) grants() contract.Grants {
	return contract.Grants{Target: e.in.Target.Grant, Plans: e.in.Plans}
}

// planUse is the use of the plan in force.
func (e *engine) planUse() contract.PlanUse {
	return e.grants().PlanOf(e.in.Start.Plan, e.in.Start.Inputs)
}

// takeGrants adopts the grants in a message: the run has a new plan or place, or the host has a new key. Workers check
// them, so a message with other grants stops the run's work and starts none.
func (e *engine) takeGrants(g *contract.Grants) {
	if g == nil {
		return
	}
	e.lacksGrant = false
	if g.Target != "" {
		e.in.Target.Grant = g.Target
	}
	e.in.Plans = e.grants().With(g.Plans).Plans
}

// continued reports whether this execution continues an earlier one of its workflow.
func continued(ctx workflow.Context) bool { return workflow.GetInfo(ctx).ContinuedExecutionRunID != "" }

package contract

import "strconv"

// Every workflow in a namespace can schedule activities. A grant proves that a program with the key of the host, or of
// the cluster, started the run with these values. Workers check the grants of every input and refuse work without them.

// Kinds of uses.
const (
	KindDirectory = "directory" // run, directory, store
	KindPlan      = "plan"      // run, store, plan, inputs
	KindEpoch     = "epoch"     // run, number
	KindExamine   = "examine"   // run, agents: asking their programs
)

// Permission is one use that an input makes of a host, with its grant.
type Permission struct {
	Kind   string
	Values []string // in the order of the kind; the grant covers all of them
	Grant  string
}

// Granted is the input of an activity. The worker executes it only if all its permissions are granted.
type Granted interface{ Permissions() []Permission }

// PlanUse names a stored plan, the manifest of its inputs and the grant to use them.
type PlanUse struct {
	Plan      string `json:"plan"`
	Inputs    string `json:"inputs,omitempty"`
	PlanGrant string `json:"plan_grant,omitempty"`
}

// permission returns the use of a plan by a run on a store.
func (u PlanUse) permission(runID, store string) Permission {
	return Permission{Kind: KindPlan, Values: []string{runID, store, u.Plan, u.Inputs}, Grant: u.PlanGrant}
}

// Permission returns the use of the target's directory and store.
func (t Target) Permission() Permission {
	return Permission{Kind: KindDirectory, Values: []string{t.RunID, t.Dir, t.Store}, Grant: t.Grant}
}

// Permissions returns the use of the directory.
func (t Target) Permissions() []Permission { return []Permission{t.Permission()} }

// PlanPermission returns the use of a plan by the target's run.
func (t Target) PlanPermission(u PlanUse) Permission { return u.permission(t.RunID, t.Store) }

// EpochPermission returns the permission to begin an epoch of a run.
func EpochPermission(runID string, epoch int, grant string) Permission {
	return Permission{Kind: KindEpoch, Values: []string{runID, strconv.Itoa(epoch)}, Grant: grant}
}

// Grants are the grants of a run that a program sends with a message.
type Grants struct {
	Target string    `json:"target,omitempty"` // of the directory
	Plans  []PlanUse `json:"plans,omitempty"`
}

// PlanOf returns the use of a plan, with its grant if there is one.
func (g Grants) PlanOf(plan, inputs string) PlanUse {
	for _, u := range g.Plans {
		if u.Plan == plan && u.Inputs == inputs {
			return u
		}
	}
	return PlanUse{Plan: plan, Inputs: inputs}
}

// With returns the grants with others, which replace those of the same plan.
func (g Grants) With(others []PlanUse) Grants {
	kept := append([]PlanUse(nil), others...)
	for _, u := range g.Plans {
		if other := (Grants{Plans: others}).PlanOf(u.Plan, u.Inputs); other.PlanGrant == "" {
			kept = append(kept, u)
		}
	}
	g.Plans = kept
	return g
}

// SetTarget replaces the target and the grant of the plan.
func (in *InspectInput) SetTarget(to Target, g Grants) {
	in.Target = to
	if in.Tree != nil {
		in.Tree.PlanUse = in.Tree.in(g)
	}
}

// SetTarget replaces the target and the grant of the plan.
func (in *SyncWorkspaceInput) SetTarget(to Target, g Grants) {
	in.Target, in.Tree.PlanUse = to, in.Tree.in(g)
}

// SetTarget replaces the target and the grant of the plan.
func (in *DeliverInput) SetTarget(to Target, g Grants) { in.Target, in.PlanUse = to, in.PlanUse.in(g) }

// in returns the use with the current grant.
func (u PlanUse) in(g Grants) PlanUse { return g.PlanOf(u.Plan, u.Inputs) }

// Permissions includes the permission to begin the epoch.
func (in OpenInput) Permissions() []Permission {
	return append(in.Target.Permissions(), EpochPermission(in.RunID, in.Epoch, in.EpochGrant))
}

// Permissions includes the plan that names what is excluded.
func (in InspectInput) Permissions() []Permission { return in.with(in.Tree) }

// Permissions includes the plan that names what is excluded.
func (in SyncWorkspaceInput) Permissions() []Permission { return in.with(&in.Tree) }

// Permissions includes the plan that names the destination.
func (in DeliverInput) Permissions() []Permission {
	return append(in.Target.Permissions(), in.PlanPermission(in.PlanUse))
}

// Permissions includes the plan that names the receiver.
func (in NotifyInput) Permissions() []Permission {
	return append(in.Target.Permissions(), in.PlanPermission(in.PlanUse))
}

func (t Target) with(tree *Tree) []Permission {
	if tree == nil {
		return t.Permissions()
	}
	return append(t.Permissions(), t.PlanPermission(tree.PlanUse))
}

// Permissions returns the use of the plan.
func (in RoundInput) Permissions() []Permission {
	return []Permission{in.permission(in.RunID, in.Store)}
}

// Permissions returns the use of the plan.
func (in ComposeInput) Permissions() []Permission {
	return []Permission{in.At.permission(in.RunID, in.Store)}
}

// Permissions returns the use of the step's plan, and of the workspace's.
func (in PassInput) Permissions() []Permission {
	all := []Permission{in.At.permission(in.RunID, in.Store)}
	if in.Tree != nil {
		all = append(all, in.Tree.permission(in.RunID, in.Store))
	}
	return all
}

// Permissions returns the uses of both parts.
func (in TurnInput) Permissions() []Permission {
	return append(in.Project.Permissions(), in.Call.Permissions()...)
}

// Permissions returns the use of the plan.
func (in ShotsInput) Permissions() []Permission {
	return []Permission{in.permission(in.RunID, in.Store)}
}

// Permissions returns the use of the plan.
func (in CheckpointInput) Permissions() []Permission {
	return []Permission{in.permission(in.RunID, in.Store)}
}

// Permissions returns the uses of both plans.
func (in AmendInput) Permissions() []Permission {
	before := PlanUse{Plan: in.Old.Plan, Inputs: in.Old.Inputs, PlanGrant: in.OldGrant}
	after := PlanUse{Plan: in.New.Plan, Inputs: in.New.Inputs, PlanGrant: in.NewGrant}
	return []Permission{before.permission(in.RunID, in.Store), after.permission(in.RunID, in.Store)}
}

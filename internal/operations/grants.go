package operations

import (
	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/grants"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// granted signs what an execution may use: its directory and store, its epoch and its plans.
func (o Operator) granted(in workflows.Input) (workflows.Input, error) {
	key, err := grants.Load(o.Settings)
	if err != nil {
		return in, err
	}
	epoch := in.Start.Epoch
	if in.Reopen != nil {
		epoch = in.Reopen.Epoch
	}
	in.EpochGrant = key.Sign(contract.EpochPermission(in.Target.RunID, epoch, ""))
	g := signed(key, in.Target, plansOf(in))
	in.Target.Grant, in.Plans = g.Target, g.Plans
	return in, nil
}

// plansOf returns the plans that an execution uses: that of its start, those that a replay adopts, and that of the
// amendment that it begins with.
func plansOf(in workflows.Input) []run.PlanRef {
	all := []run.PlanRef{in.Start.PlanRef()}
	if in.Snapshot != nil {
		all = append(all, in.Snapshot.State.PlanInForce(in.Start))
	}
	for _, a := range in.Start.Amendments {
		all = append(all, a.New)
	}
	if in.Reopen != nil && in.Reopen.Amend != nil && in.Reopen.Amend.Plan != nil {
		all = append(all, *in.Reopen.Amend.Plan)
	}
	return all
}

// signed returns the grants of a run for its directory and plans.
func signed(key *grants.Key, t contract.Target, plans []run.PlanRef) contract.Grants {
	g := contract.Grants{Target: key.Sign(t.Permission())}
	for _, ref := range plans {
		g = g.With([]contract.PlanUse{key.Plan(t, ref.Plan, ref.Inputs)})
	}
	return g
}

// renewed returns the grants of an open run for a message: of its directory, if that is on this host, and of the plans
// that it uses from then on. The run adopts them, so a run that was started with another key can continue.
func (o Operator) renewed(runID string, m workflows.Message) (*contract.Grants, error) {
	dir, err := Find(o.Settings.StateDir, runID, false)
	if err != nil {
		return nil, nil //nolint:nilerr // the run was started on another host: its grants stay
	}
	claim, err := dir.Claim()
	if err != nil || claim.Host != o.Host && HostBound(claim.Store) {
		return nil, nil //nolint:nilerr // as above
	}
	now, err := dir.Now()
	if err != nil {
		return nil, err
	}
	key, err := grants.Load(o.Settings)
	if err != nil {
		return nil, err
	}
	t := contract.Target{RunID: claim.RunID, Dir: dir.Root, Store: o.storeOf(claim)}
	if m.Dir != "" {
		t.Dir = m.Dir
	}
	var plans []run.PlanRef
	if p := now.State.Plan; p != nil {
		plans = append(plans, p.PlanRef)
	}
	if m.Plan != nil {
		plans = append(plans, *m.Plan)
	}
	g := signed(key, t, plans)
	if claim.Host != o.Host { // the directory has another path there
		g.Target = ""
	}
	return &g, nil
}

// renewsGrants reports whether a message carries grants.
func renewsGrants(verb string) bool {
	return verb == workflows.VerbResume || verb == workflows.VerbAmend
}

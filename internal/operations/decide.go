package operations

import (
	"context"
	"errors"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Decision is the result of a decision.
type Decision struct {
	Said     string    // the run's answer
	Reopened *Reopened // the decision opened the run's next epoch
}

// Decide answers the open question of a run: a hand-off, a gate, a review or a delivery. If a failed or interrupted
// run left it open, the answer opens the run's next epoch.
func (o Operator) Decide(ctx context.Context, dir rundir.Dir, m contract.Message) (Decision, error) {
	claim, err := dir.Claim()
	if err != nil {
		return Decision{}, err
	}
	if err := AtHome(o.Settings.StateDir, claim, dir); err != nil {
		return Decision{}, err
	}
	if m.By == "" {
		m.By = o.By
	}
	if err := notText(contract.VerbDecide, m); err != nil {
		return Decision{}, err
	}
	m = o.hidden(m)
	now, effective, err := o.Observe(ctx, dir, claim)
	if err != nil {
		return Decision{}, err
	}
	if project, about, there := forwarded(dir, now.State, m); there {
		return o.Decide(ctx, project, about)
	}
	q, open := now.State.Asks()
	if !open {
		if lost := rundir.Lost(dir, now.State); lost != nil && effective.Liveness != run.LiveOpen {
			return Decision{}, lost
		}
		if err := workflows.CheckDecision(now.State, m); err != nil {
			return Decision{}, notDecided(now, effective, err)
		}
		return Decision{Said: "that was decided already"}, nil
	}
	if m.ID == "" { // the decision is about the question that was read
		m.ID, m.Implicit = q.ID, true
	}
	left := effective.Status == run.Failed || effective.Status == run.Interrupted
	switch {
	case effective.Liveness == run.LiveUnknown:
		return Decision{}, unknown(contract.VerbDecide, dir, effective)
	case effective.Liveness == run.LiveOpen:
		ack, err := o.sendInPlace(ctx, dir, claim, contract.VerbDecide, m)
		return Decision{Said: ack.Message}, err
	case !left:
		return Decision{}, refusedByStatus(now.State, effective, contract.VerbDecide)
	}
	re, err := o.Reopen(ctx, dir, Reopening{Note: m.Note, Decision: &m})
	return Decision{Said: m.Action + " is decided", Reopened: &re}, err
}

// notDecided is the refusal of a decision without an open question.
func notDecided(now rundir.Now, effective run.EffectiveStatus, err error) error {
	refused := refusalOf(now.State.RunID, contract.VerbDecide, err)
	var r *RefusedError
	if errors.As(refused, &r) && r.Conflict != nil {
		r.Conflict = run.Conflict(effective.Status, run.Decide, run.Terms{})
	}
	if r != nil && now.Why != nil { // the question may be in a lost line
		r.Why += ". But its directory is damaged: " + now.Why.Error()
	}
	return refused
}

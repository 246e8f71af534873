package operate

import (
	"context"
	"errors"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

// Decision is what became of a decision.
type Decision struct {
	Said     string    // the run's answer
	Reopened *Reopened // the decision opened the run's next epoch
}

// Decide decides the open question of a run: a hand-off, a gate, a review or a delivery. One that a failed or interrupted run left undecided is decided too: that opens the run's next epoch.
func (o Operator) Decide(ctx context.Context, dir rundir.Dir, m workflows.Message) (Decision, error) {
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
	m = o.hidden(m)
	now, err := dir.Now()
	if err != nil {
		return Decision{}, err
	}
	stands := o.Standing(ctx, dir.Seat(claim), now.State.Status)
	if _, open := now.State.Asks(); !open {
		if err := workflows.MayDecide(now.State, m); err != nil {
			return Decision{}, notDecided(now.State, stands, err)
		}
		return Decision{Said: "that was decided already"}, nil
	}
	left := stands.Status == run.Failed || stands.Status == run.Interrupted
	if stands.Liveness == run.LiveOpen || !left {
		if err := o.rehome(ctx, claim, dir, now.State.Status); err != nil {
			return Decision{}, err
		}
		ack, err := o.Send(ctx, claim.RunID, workflows.VerbDecide, m)
		return Decision{Said: ack.Said}, err
	}
	re, err := o.Reopen(ctx, dir, Reopening{Note: m.Note, Decision: &m})
	return Decision{Said: m.Action + " is decided", Reopened: &re}, err
}

// notDecided is the refusal of a decision where nothing waits for one.
func notDecided(s run.State, stands run.Standing, err error) error {
	refused := said(s.RunID, workflows.VerbDecide, err)
	var r *RefusedError
	if errors.As(refused, &r) && r.Conflict != nil {
		r.Conflict = run.Conflict(stands.Status, run.Decide, run.Terms{})
	}
	return refused
}

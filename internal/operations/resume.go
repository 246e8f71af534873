package operations

import (
	"context"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Resume continues a run (requirement 003 §6): a paused one where it paused, a closed one, or one whose
// directory was moved, in a new epoch. Of several concurrent calls one wins. If the run's status does not allow it, the error contains a *run.ConflictError.
func (o Operator) Resume(ctx context.Context, dir rundir.Dir, r Reopening) (Reopened, error) {
	claim, err := dir.Claim()
	if err != nil {
		return Reopened{}, err
	}
	if err := dir.Known(); err != nil {
		return Reopened{}, err
	}
	now, effective, err := o.Observe(ctx, dir, claim)
	if err != nil {
		return Reopened{}, err
	}
	if effective.Liveness == run.LiveOpen {
		_, err = o.SendUpdate(ctx, dir, contract.VerbResume, contract.Message{Note: r.Note, Force: r.Force,
			Reason: r.Reason})
		if !o.Reopens(ctx, claim.RunID, err) {
			return Reopened{RunID: claim.RunID, Epoch: now.State.Epoch, From: now.State.Status}, err
		}
	}
	return o.Reopen(ctx, dir, r)
}

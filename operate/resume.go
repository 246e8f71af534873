package operate

import (
	"context"
	"errors"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

// Resume lets a run go on (requirement 003 §6): a paused one where it rests, one that has closed in a new epoch. Of several calls at once one wins.
// Where the run's status does not allow it, the error carries a *run.ConflictError.
func (o Operator) Resume(ctx context.Context, dir rundir.Dir, r Reopening) (Reopened, error) {
	claim, err := dir.Claim()
	if err != nil {
		return Reopened{}, err
	}
	now, err := dir.Now()
	if err != nil {
		return Reopened{}, err
	}
	if stands := o.Standing(ctx, dir.Seat(claim), now.State.Status); stands.Liveness != run.LiveOpen {
		return o.Reopen(ctx, dir, r)
	}
	_, err = o.Tell(ctx, dir, workflows.VerbResume, workflows.Message{Note: r.Note, Force: r.Force, Reason: r.Reason})
	if refused := (*RefusedError)(nil); errors.As(err, &refused) && refused.Closed { // it closed in this very moment
		return o.Reopen(ctx, dir, r)
	}
	return Reopened{RunID: claim.RunID, Epoch: now.State.Epoch, From: now.State.Status}, err
}

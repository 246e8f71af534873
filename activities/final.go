package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// checkEnd reports whether the directory's run was finished by another journal. The outcome is final or empty.
func checkEnd(ctx context.Context, d rundir.Dir, s blobs.Store,
	in contract.ProjectInput) (contract.ProjectResult, error) {
	end, err := rundir.ReadEnd(d)
	if err == nil && end == nil {
		tail, err := d.Tail()
		return contract.ProjectResult{Tail: tail}, err
	}
	if err != nil || end.Holds(in.First, in.Prev, nil) {
		return contract.ProjectResult{}, err
	}
	return contract.ProjectResult{Outcome: run.ProjectionFinal, Tail: end.Tail, End: endOf(end)}, d.CatchUp(ctx, s)
}

func endOf(e *rundir.End) *contract.JournalEnd {
	if e == nil {
		return nil
	}
	return &contract.JournalEnd{State: e.State, Head: e.Head}
}

// requireUnfinished refuses work on a finished run, which a reset workflow can have in its queue before it can check. It
// also refuses work in a directory that was lost: what the work would write there would be in the way of a rebuild.
func requireUnfinished[I interface{ GetTarget() contract.Target }, O any](a *Activities,
	do func(context.Context, I) (O, error)) func(context.Context, I) (O, error) {
	return func(ctx context.Context, in I) (O, error) {
		var none O
		at := in.GetTarget()
		end, err := rundir.ReadEnd(a.open(at.Dir))
		if err != nil {
			return none, err
		}
		if end != nil {
			why := errors.New("run " + at.RunID + " is already done: nothing was changed")
			return none, temporal.NewNonRetryableApplicationError(why.Error(), contract.ErrFinal, why)
		}
		if _, err := a.open(at.Dir).Claim(); errors.Is(err, rundir.ErrNoRun) {
			return none, temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrDirectoryLost, err)
		}
		return do(ctx, in)
	}
}

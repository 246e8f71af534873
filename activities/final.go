package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/work"
)

// lookAtEnd says whether the directory's run is done, other than by this journal. The outcome is final or, for anything else, empty.
func lookAtEnd(ctx context.Context, d rundir.Dir, s blobs, in work.ProjectInput) (work.ProjectResult, error) {
	end, err := d.End(ctx, s)
	if err != nil || end == nil || end.Holds(in.First, in.Prev, nil) {
		return work.ProjectResult{}, err
	}
	return work.ProjectResult{Outcome: rundir.Final, Tail: end.Tail, End: endOf(end)}, nil
}

func endOf(e *rundir.End) *work.End {
	if e == nil {
		return nil
	}
	return &work.End{State: e.State, Head: e.Head}
}

// unended refuses work on what belongs to a run that is done. A workflow that is reset while such work waits in the queue has it done before it can look.
func unended[I interface{ Where() work.Target }, O any](a *Activities, do func(context.Context, I) (O, error)) func(context.Context, I) (O, error) {
	return func(ctx context.Context, in I) (O, error) {
		var none O
		at := in.Where()
		s, err := a.store(ctx, at.Store)
		if err != nil {
			return none, err
		}
		end, err := a.cfg.Open(at.Dir).End(ctx, blobs{s})
		if err != nil {
			return none, err
		}
		if end != nil {
			why := errors.New("run " + at.RunID + " is done, and done is final: nothing of it is changed")
			return none, temporal.NewNonRetryableApplicationError(why.Error(), work.ErrFinal, why)
		}
		return do(ctx, in)
	}
}

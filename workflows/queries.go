package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/workflows/contract"
)

// registerQueries registers the queries. All answer from the folded state, as the files do.
func (lp *loop) registerQueries(ctx workflow.Context) error {
	queries := []struct {
		name, about string
		handler     any
	}{
		{
			contract.QueryStatus, "The folded state (status, place, passes, cost by role and stage, last checkpoints) and the available actions.",
			lp.queryStatus,
		},
		{contract.QueryHandoff, "The question that waits for a decision.", lp.queryHandoff},
		{
			contract.QueryHeld, "The full disk, store or program that the run waits for.",
			func() (contract.HeldAnswer, error) { return lp.host.heldUp(), nil },
		},
		{contract.QueryDirectory, "Path and task queue of the run directory.", func() (contract.DirectoryAnswer, error) {
			return contract.DirectoryAnswer{Dir: lp.in.Target.Dir, Queue: lp.in.DirQueue}, nil
		}},
	}
	for _, q := range queries {
		opts := workflow.QueryHandlerOptions{Description: q.about}
		if err := workflow.SetQueryHandlerWithOptions(ctx, q.name, q.handler, opts); err != nil {
			return err
		}
	}
	return nil
}

// queryStatus adds the refused signals that are not journaled yet.
func (lp *loop) queryStatus() (contract.StatusAnswer, error) {
	s := lp.state()
	s.Refused += lp.inbox.counted()
	return contract.StatusAnswer{State: s, AvailableActions: s.Available(s.Status), Pausing: lp.inbox.pausing()}, nil
}

func (lp *loop) queryHandoff() (contract.HandoffAnswer, error) {
	a := contract.HandoffAnswer{Last: lp.state().Decided}
	if q, open := lp.state().Asks(); open {
		a.Open, a.Question, a.Verdict, a.Type = true, &q, q.Verdict, q.Type
		a.Commands = commands(lp.state(), lp.in)
	}
	return a, nil
}

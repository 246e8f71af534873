package workflows

import (
	"cmp"
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// noteTroubles journals what an activity met and got over. Without an attempt of its own a trouble was got over in the given one; 0: not by trying
// again. Behind the event that ended the run nothing is written any more.
func (e *engine) noteTroubles(ctx workflow.Context, context string, all []work.Trouble, attempt int) error {
	if e.j.state.Status.Closed() {
		return nil
	}
	for _, t := range all {
		ev := run.ErrorNoted{
			Context: context, Category: t.Category, Message: t.Message, Diagnostics: t.Diagnostics, Recovered: true, Attempt: cmp.Or(t.Attempt, attempt),
		}
		if err := e.j.emit(ctx, run.KindErrorNoted, e.j.state.Phase, ev); err != nil {
			return err
		}
	}
	return nil
}

// message is what an activity itself said of its failure, without Temporal's words around it.
func message(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Message()
	}
	return err.Error()
}

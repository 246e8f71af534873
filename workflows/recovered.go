package workflows

import (
	"cmp"
	"errors"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// journalRecovered journals errors that an activity recovered from. attempt is that of errors without one; 0: no
// retry was needed. Nothing is journaled after the end of the run.
func (e *engine) journalRecovered(ctx workflow.Context, context string, all []contract.RecoveredError,
	attempt int) error {
	if e.j.state.Status.Closed() || e.j.newer {
		return nil
	}
	for _, t := range all {
		ev := run.ErrorNoted{
			Context: context, Category: t.Category, Message: t.Message, Diagnostics: t.Diagnostics, Recovered: true,
			Attempt: cmp.Or(t.Attempt, attempt), Kept: t.Kept,
		}
		if err := e.j.emit(ctx, run.KindErrorNoted, e.j.state.Phase, ev); err != nil {
			return err
		}
	}
	return nil
}

// errorMessage returns an activity's own error message without Temporal's wrapping.
func errorMessage(err error) string {
	text := err.Error()
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		switch e := cause.(type) { //nolint:errorlint // each link of the chain is visited
		case *temporal.ActivityError, *temporal.ChildWorkflowExecutionError:
			if inner := errors.Unwrap(cause); inner != nil {
				text = strings.Replace(text, cause.Error(), inner.Error(), 1)
			}
		case *temporal.ApplicationError:
			return strings.Replace(text, e.Error(), e.Message(), 1)
		case *temporal.TimeoutError:
			return strings.Replace(text, e.Error(), e.Message(), 1)
		}
	}
	return text
}

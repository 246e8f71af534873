package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
)

// refuse is the answer to a message that cannot be acted on. Nothing has changed.
func refuse(format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), "Refused", nil)
}

// conflict refuses what a run of this status does not allow. What it does allow goes with it (see ConflictIn).
func conflict(s run.State, op run.Operation, format string, args ...any) error {
	_, open := s.Asks()
	details := run.Conflict(s.Status, op, run.Terms{Undecided: open})
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf(format, args...), "Refused", temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{*details}})
}

// ConflictIn gives the conflict that a refusal carries; nil: it was refused for another reason than the run's status.
func ConflictIn(err error) *run.ConflictError {
	var app *temporal.ApplicationError
	var c run.ConflictError
	if !errors.As(err, &app) || !app.HasDetails() || app.Details(&c) != nil || c.Operation == "" {
		return nil
	}
	return &c
}

// operationOf is what a message asks for, in the words of the table of operations.
func operationOf(verb string) run.Operation { return run.Operation(verb) }

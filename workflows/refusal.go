package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// refuse returns the error for a message that is refused without any change.
func refuse(format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), "Refused", nil)
}

// unmet refuses a message whose precondition does not hold.
func unmet(format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), contract.FailedPrecondition, nil)
}

// conflict refuses an operation that the run's status does not allow. Its details list the allowed operations (see
// ConflictFrom).
func conflict(s run.State, op run.Operation, format string, args ...any) error {
	_, open := s.Asks()
	details := run.Conflict(s.Status, op, run.Terms{Undecided: open})
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf(format, args...), "Refused",
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{*details}})
}

// ConflictFrom returns the conflict in a refusal, or nil if the run's status is not the reason.
func ConflictFrom(err error) *run.ConflictError {
	var app *temporal.ApplicationError
	var c run.ConflictError
	if !errors.As(err, &app) || !app.HasDetails() || app.Details(&c) != nil || c.Operation == "" {
		return nil
	}
	return &c
}

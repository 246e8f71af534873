package workflows

import (
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// counts reports whether an attempt has a cost, or an unknown one.
func counts(s run.Spend) bool {
	return s.USD > 0 || s.Tokens != (run.Tokens{}) || s.Known == run.CostUnknown
}

func isType(err error, name string) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == name
}

// timedOutInQueue reports whether no worker took the delivery from its queue.
func timedOutInQueue(err error) bool {
	var t *temporal.TimeoutError
	return errors.As(err, &t) && t.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
}

// lastHost returns the host of the last heartbeat, or the host that holds the result.
func lastHost(err error) string {
	var t *temporal.TimeoutError
	var beat contract.Heartbeat
	if app := (*temporal.ApplicationError)(nil); errors.As(err, &app) &&
		(app.Type() == contract.ErrUnstored || app.Type() == contract.ErrWorkerLost) && app.Details(&beat) == nil {
		return beat.Host
	}
	if errors.As(err, &t) && t.HasLastHeartbeatDetails() && t.LastHeartbeatDetails(&beat) == nil {
		return beat.Host
	}
	return ""
}

func lostMessage(err error) string {
	var t *temporal.TimeoutError
	if errors.As(err, &t) {
		return "the worker sent no more heartbeats"
	}
	if isType(err, contract.ErrWorkerStopping) {
		return "the worker stopped"
	}
	return errorMessage(err)
}

func alreadyStarted(err error) bool {
	var started *temporal.ChildWorkflowExecutionAlreadyStartedError
	return errors.As(err, &started)
}

// errContinueAsNew ends a wait because this execution has enough history: the next one continues it. This keeps a
// paused run within the server's limits, however many messages it gets.
var errContinueAsNew = errors.New("the next execution continues the wait")

// A directory that has lines or an epoch which this execution does not know is newer: Temporal's database was restored
// from a backup, the workflow was reset, or another cluster has continued the run. There is one open execution of a run,
// so it takes the next epoch from the directory: continue-as-new, with nothing of what it knows itself. It finds out by
// what it writes, and while it stands still, by a comparison before it answers an Update.

// errNewer stops an execution whose directory is newer.
var errNewer = temporal.NewNonRetryableApplicationError("the run directory has later events: they count", contract.ErrNewer,
	nil)

func superseded() error {
	return temporal.NewNonRetryableApplicationError("the run continues from its directory, which has later events: send "+
		"the message again", contract.Superseded, nil)
}

// errBeginAgain ends a step in its middle, because the state has changed under it: the run continues from its state.
var errBeginAgain = errors.New("the run continues from another place")

// tooLarge is the type of the SDK's error for a payload above the server's limit: a retry cannot succeed.
const tooLarge = "payloadSizeError"

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

// workerLost reports whether the worker was lost.
func workerLost(err error) bool {
	if isType(err, contract.ErrWorkerLost) {
		return true
	}
	var t *temporal.TimeoutError
	return errors.As(err, &t) && t.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT
}

// costOf returns the cost of a call without an answer, from the details of its error, and the notes that the run may
// not have accounted for. spend is nil if no agent was started, or the notes contain its cost.
func costOf(err error) (spend *run.Spend, notes []contract.SupersededResult) {
	var found run.Spend
	var app *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	read := func(has bool, details func(...any) error) {
		if has && details(&found, &notes) != nil { // an earlier release sends only the cost
			notes = nil
			if details(&found) != nil {
				found = run.Spend{}
			}
		}
	}
	switch {
	case errors.As(err, &app) && app.Type() != contract.ErrUnstored && app.Type() != contract.ErrWorkerLost:
		read(app.HasDetails(), app.Details)
	case errors.As(err, &cancelled):
		read(cancelled.HasDetails(), cancelled.Details)
	}
	if !counts(found) {
		return nil, notes
	}
	return &found, notes
}

// permanent reports whether no later attempt at reading the store can succeed without an operator.
func permanent(err error) bool {
	for _, kind := range []string{contract.ErrBadInput, contract.ErrDiskFull, contract.ErrDamaged, tooLarge} {
		if isType(err, kind) {
			return true
		}
	}
	var panicked *temporal.PanicError
	return errors.As(err, &panicked)
}

// hostWithoutStore returns the host that reported that it cannot reach the store, or "" for other errors.
func hostWithoutStore(err error) string {
	var app *temporal.ApplicationError
	var from contract.Heartbeat
	if errors.As(err, &app) && app.Type() == contract.ErrNoStore && app.HasDetails() && app.Details(&from) == nil {
		return from.Host
	}
	return ""
}

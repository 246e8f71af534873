package operations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/google/uuid"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

// RefusedError reports that a run refused a message, with the run's reason. Nothing was changed.
type RefusedError struct {
	Verb, Why string
	Conflict  *run.ConflictError // set if the status does not allow it
	Undecided bool               // an operator has to decide a question first
	Closed    bool               // the run has no open workflow
	Moved     bool               // the directory was moved, or that is not known

	// the request is valid, but something else has to change first: the run's budget, its worker, its server
	FailedPrecondition bool
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s refused: %s", e.Verb, e.Why) }

func (e *RefusedError) Unwrap() error {
	if e.Conflict == nil {
		return nil
	}
	return e.Conflict
}

// SendUpdate sends a message to the open run of a directory. If the run's status does not allow it, the error contains
// a *run.ConflictError, even without a worker.
func (o Operator) SendUpdate(ctx context.Context, dir rundir.Dir, verb string,
	m contract.Message) (contract.Ack, error) {
	claim, err := dir.Claim()
	if err != nil {
		return contract.Ack{}, err
	}
	if err := AtHome(o.Settings.StateDir, claim, dir); err != nil {
		return contract.Ack{}, err
	}
	if most := o.Settings.Policy.Budget; verb == contract.VerbBudget && most > 0 && m.USD > most {
		return contract.Ack{},
			&PolicyError{Differences: []string{fmt.Sprintf("a budget of %.2f USD is above policy.budget_usd, %.2f",
				m.USD, most)}}
	}
	had := rundir.Begun(dir) // before the events are read: they are written first
	now, effective, err := o.observeOpen(ctx, dir, claim, verb)
	if err != nil {
		return contract.Ack{}, err
	}
	if now.Tail.Seq == 0 {
		if lost := rundir.Lost(dir, now.State); lost != nil && had {
			return contract.Ack{}, lost
		}
		return contract.Ack{}, refusedByStatus(now.State, effective, verb)
	}
	if verb == contract.VerbResume {
		c := rundir.Continuation{Now: now}
		if c.Start, err = dir.First(); err != nil {
			return contract.Ack{}, err
		}
		_, err = o.reevaluated(ctx, claim, dir, c, Reopening{Force: m.Force})
		if errors.As(err, new(*PolicyError)) {
			return contract.Ack{}, err
		}
	}
	ack, err := o.sendInPlace(ctx, dir, claim, verb, m)
	if err == nil && (verb == contract.VerbPause || verb == contract.VerbResume) {
		for _, w := range o.toProjects(ctx, dir, now.State, verb, contract.Message{Note: m.Note, Now: m.Now}) {
			ack.Message += "; " + w
		}
	}
	return ack, err
}

// sendInPlace sends a message to the open run of a directory that was not moved. If its workflow has closed since it
// was found open, the refusal has the status: a run records its end a moment before its workflow closes.
func (o Operator) sendInPlace(ctx context.Context, dir rundir.Dir, claim run.Claim, verb string,
	m contract.Message) (contract.Ack, error) {
	if err := o.inPlace(ctx, verb, claim, dir); err != nil {
		return contract.Ack{}, err
	}
	if err := o.Refresh(ctx, dir); ctx.Err() != nil {
		return contract.Ack{}, err
	}
	ack, err := o.Send(ctx, claim.RunID, verb, m)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) && refused.Closed {
		if _, _, ended := o.observeOpen(ctx, dir, claim, verb); ended != nil {
			return ack, ended
		}
	}
	return ack, err
}

// observeOpen reads the journal of a run whose workflow is open. Any other run is refused.
func (o Operator) observeOpen(ctx context.Context, dir rundir.Dir, claim run.Claim,
	verb string) (rundir.Now, run.EffectiveStatus, error) {
	now, effective, err := o.Observe(ctx, dir, claim)
	switch {
	case err != nil:
	case effective.Liveness == run.LiveUnknown:
		err = unknown(verb, dir, effective)
	case effective.Liveness != run.LiveOpen:
		err = refusedByStatus(now.State, effective, verb)
	}
	return now, effective, err
}

// refusedByStatus refuses an operation that the status of a run does not allow.
func refusedByStatus(s run.State, effective run.EffectiveStatus, verb string) error {
	c := run.Conflict(effective.Status, run.Operation(verb), s.Terms())
	return &RefusedError{Verb: verb, Why: c.Error(), Conflict: c, Closed: effective.Liveness != run.LiveOpen}
}

// unknown refuses an operation on a run that may be alive on a server that does not answer.
func unknown(verb string, dir rundir.Dir, effective run.EffectiveStatus) error {
	return &RefusedError{Verb: verb, FailedPrecondition: true,
		Why: fmt.Sprintf("whether the run is alive is unknown (%s). If that server is gone for good: %s",
			effective.Detail, forcedResume(dir))}
}

// Reopens reports whether a message was refused because a new epoch has to continue the run: it ended after it was
// found open, or its directory was moved.
func (o Operator) Reopens(ctx context.Context, runID string, err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && refused.Moved || o.endedMeanwhile(ctx, runID, err)
}

// endedMeanwhile reports whether a message was refused because the run ended after it was found open. A run that
// refused the message while it wrote its end is waited for: its workflow closes a moment later.
func (o Operator) endedMeanwhile(ctx context.Context, runID string, err error) bool {
	var refused *RefusedError
	switch {
	case !errors.As(err, &refused):
		return false
	case refused.Closed:
		return true
	case refused.Conflict == nil || !refused.Conflict.From.Closed() || refused.Conflict.From == run.Done:
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	if err := o.Client.GetWorkflow(ctx, runID, "").Get(ctx, nil); err != nil && ctx.Err() != nil {
		return false // it is open; any other error is how it closed
	}
	open, err := o.Open(ctx, runID)
	return err == nil && !open
}

// Send sends a message as an Update and returns the run's answer. A message of a request that has an id has that id, so
// the server executes it once. Each other message has a new id: the run's state makes a repetition harmless.
func (o Operator) Send(ctx context.Context, runID, verb string, m contract.Message) (contract.Ack, error) {
	if m.By == "" {
		m.By = o.By
	}
	if err := notText(verb, m); err != nil {
		return contract.Ack{}, err
	}
	m = o.hidden(m)
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	if err := o.attended(ctx, runID); err != nil {
		return contract.Ack{}, &RefusedError{Verb: verb, Why: err.Error(), FailedPrecondition: true}
	}
	undo := nothing
	if verb == contract.VerbResume {
		var err error
		if undo, err = o.handOverResumed(ctx, runID); err != nil {
			return contract.Ack{}, fmt.Errorf("%s run %s: %w", verb, runID, err)
		}
	}
	ack, err := o.update(ctx, client.UpdateWorkflowOptions{
		UpdateID: o.updateID(verb), WorkflowID: runID, UpdateName: verb, Args: []any{m},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	err = refusalOf(runID, verb, err)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		err = errors.Join(err, undo())
	}
	return ack, err
}

// update sends an Update. One that the workflow did not handle because the directory is newer is sent again: the next
// execution, which continues the directory, handles it.
func (o Operator) update(ctx context.Context, u client.UpdateWorkflowOptions) (ack contract.Ack, err error) {
	for range updates {
		var h client.WorkflowUpdateHandle
		if h, err = o.Client.UpdateWorkflow(ctx, u); err == nil {
			err = h.Get(ctx, &ack)
		}
		if app := (*temporal.ApplicationError)(nil); !errors.As(err, &app) || app.Type() != contract.Superseded {
			return ack, err
		}
		select {
		case <-ctx.Done():
			return ack, err
		case <-time.After(updateAgain):
		}
	}
	return ack, err
}

// updateID is the id of a message. A request may send several, with different verbs.
func (o Operator) updateID(verb string) string {
	if o.Request == "" {
		return uuid.NewString()
	}
	return verb + "-" + o.Request
}

// endedFirst is the type of the error of a message that a run accepted before it ended without an answer.
const endedFirst = "AcceptedUpdateCompletedWorkflow"

func refusalOf(runID, verb string, err error) error {
	var app *temporal.ApplicationError
	var missing *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &app) && app.Type() == endedFirst, errors.As(err, &missing):
		return &RefusedError{Verb: verb, Why: fmt.Sprintf("run %s is not open (see `starter status %s`)", runID, runID),
			Closed: true}
	case app != nil:
		return &RefusedError{
			Verb: verb, Why: app.Message(),
			Conflict:           workflows.ConflictFrom(err),
			FailedPrecondition: app.Type() == contract.FailedPrecondition,
		}
	}
	if late := (*client.WorkflowUpdateServiceTimeoutOrCanceledError)(nil); errors.As(err, &late) {
		return &UnansweredError{Verb: verb, RunID: runID, Err: err}
	}
	return fmt.Errorf("%s run %s: %w", verb, runID, err)
}

// UnansweredError reports that a run has not answered a message in time. It may still act on it.
type UnansweredError struct {
	Verb, RunID string
	Err         error
}

func (e *UnansweredError) Error() string {
	return fmt.Sprintf("%s run %s: its worker did not answer in time, and may still act on the message; see "+
		"starter status %s before you send it again", e.Verb, e.RunID, e.RunID)
}

// Unwrap returns the cause.
func (e *UnansweredError) Unwrap() error { return e.Err }

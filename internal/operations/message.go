package operations

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/google/uuid"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

// RefusedError reports that a run refused a message, with the run's reason. Nothing was changed.
type RefusedError struct {
	Verb, Why string
	Conflict  *run.ConflictError // set if the status does not allow it
	Undecided bool               // an operator has to decide a question first
	Closed    bool               // the run has no open workflow

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

// SendUpdate sends a message to the run of a directory, which may have been moved while the run was paused. If the
// run's status does not allow it, the error contains a *run.ConflictError, even without a worker.
func (o Operator) SendUpdate(ctx context.Context, dir rundir.Dir, verb string,
	m workflows.Message) (workflows.Ack, error) {
	claim, err := dir.Claim()
	if err != nil {
		return workflows.Ack{}, err
	}
	if err := AtHome(o.Settings.StateDir, claim, dir); err != nil {
		return workflows.Ack{}, err
	}
	if most := o.Settings.Policy.Budget; verb == workflows.VerbBudget && most > 0 && m.USD > most {
		return workflows.Ack{},
			&PolicyError{Differences: []string{fmt.Sprintf("a budget of %.2f USD is above policy.budget_usd, %.2f",
				m.USD, most)}}
	}
	had := rundir.Begun(dir) // before the events are read: they are written first
	now, effective, err := o.Observe(ctx, dir, claim)
	if err != nil {
		return workflows.Ack{}, err
	}
	begun := now.Tail.Seq > 0
	if verb == workflows.VerbResume && begun && effective.Liveness == run.LiveOpen {
		start, err := dir.First()
		if err != nil {
			return workflows.Ack{}, err
		}
		c := rundir.Continuation{Now: now, Start: start}
		_, err = o.reevaluated(ctx, claim, dir, c, Reopening{Force: m.Force})
		if errors.As(err, new(*PolicyError)) {
			return workflows.Ack{}, err
		}
	}
	if effective.Liveness == run.LiveOpen && begun || effective.Liveness == run.LiveUnknown {
		if verb == workflows.VerbResume && claim.Host == o.Host { // on another host the folder may have another name
			m.Dir = dir.Root
		} else if err := o.rehome(ctx, claim, dir, now.State.Status); err != nil {
			return workflows.Ack{}, err
		}
		ack, err := o.Send(ctx, claim.RunID, verb, m)
		if refused := (*RefusedError)(nil); errors.As(err, &refused) && refused.Closed {
			return ack, o.closed(ctx, dir, claim, refused)
		}
		err = o.orBehind(ctx, dir, claim.RunID, err)
		if err == nil && (verb == workflows.VerbPause || verb == workflows.VerbResume) {
			for _, w := range o.toProjects(ctx, dir, now.State, verb, workflows.Message{Note: m.Note, Now: m.Now}) {
				ack.Message += "; " + w
			}
		}
		return ack, err
	}
	if lost := rundir.Lost(dir, now.State); lost != nil && effective.Liveness == run.LiveOpen && had {
		return workflows.Ack{}, lost
	}
	c := conflictOf(now.State, effective, verb)
	return workflows.Ack{}, &RefusedError{Verb: verb, Why: c.Error(), Conflict: c,
		Closed: effective.Liveness != run.LiveOpen}
}

func conflictOf(s run.State, effective run.EffectiveStatus, verb string) *run.ConflictError {
	return run.Conflict(effective.Status, run.Operation(verb), s.Terms())
}

// closed adds to a refusal the status of a run whose workflow closed after its status was read: a run records its end
// a moment before its workflow closes.
func (o Operator) closed(ctx context.Context, dir rundir.Dir, claim run.Claim, refused *RefusedError) error {
	now, effective, err := o.Observe(ctx, dir, claim)
	if err != nil {
		return errors.Join(refused, err)
	}
	switch effective.Liveness {
	case run.LiveOpen:
		return refused
	case run.LiveUnknown:
		refused.Why = fmt.Sprintf("whether the run is alive is unknown (%s). If that server is gone for good: %s",
			effective.Detail, forcedResume(dir))
		return refused
	}
	refused.Conflict = conflictOf(now.State, effective, refused.Verb)
	refused.Why = refused.Conflict.Error()
	return refused
}

// rehome reports the new place of a directory that was moved on this host to a paused run. A resume does this itself.
func (o Operator) rehome(ctx context.Context, claim run.Claim, dir rundir.Dir, status run.Status) error {
	if claim.Host != o.Host || status.Class() != run.OperatorPause {
		return nil
	}
	if err := o.attended(ctx, claim.RunID); err != nil {
		return &RefusedError{Verb: workflows.VerbRehome, Why: err.Error(), FailedPrecondition: true}
	}
	var is workflows.DirectoryAnswer
	v, err := o.Client.QueryWorkflow(ctx, claim.RunID, "", workflows.QueryDirectory)
	if err != nil || v.Get(&is) != nil || is.Dir == dir.Root {
		return nil //nolint:nilerr // a run that does not answer refuses the message too, with its reason
	}
	_, err = o.Send(ctx, claim.RunID, workflows.VerbRehome, workflows.Message{Dir: dir.Root})
	return err
}

// EndedMeanwhile reports whether a message was refused because the run ended after it was found open. A run that
// refused the message while it wrote its end is waited for: its workflow closes a moment later.
func (o Operator) EndedMeanwhile(ctx context.Context, runID string, err error) bool {
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
func (o Operator) Send(ctx context.Context, runID, verb string, m workflows.Message) (workflows.Ack, error) {
	if m.By == "" {
		m.By = o.By
	}
	if err := notText(verb, m); err != nil {
		return workflows.Ack{}, err
	}
	m = o.hidden(m)
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	if err := o.attended(ctx, runID); err != nil {
		return workflows.Ack{}, &RefusedError{Verb: verb, Why: err.Error(), FailedPrecondition: true}
	}
	undo := nothing
	if verb == workflows.VerbResume {
		var err error
		if undo, err = o.handOverResumed(ctx, runID); err != nil {
			return workflows.Ack{}, fmt.Errorf("%s run %s: %w", verb, runID, err)
		}
	}
	var ack workflows.Ack
	h, err := o.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		UpdateID: o.updateID(verb), WorkflowID: runID, UpdateName: verb, Args: []any{m},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(ctx, &ack)
	}
	err = refusalOf(runID, verb, err)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		err = errors.Join(err, undo())
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
			FailedPrecondition: app.Type() == workflows.FailedPrecondition,
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

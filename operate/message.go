package operate

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

// RefusedError says that a run did not accept a message, in its own words. Nothing has changed.
type RefusedError struct {
	Verb, Why string
	Conflict  *run.ConflictError // where it is the run's status that speaks against it
	Undecided bool               // an operator has to decide a question first
	Closed    bool               // the run has no open workflow
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s refused: %s", e.Verb, e.Why) }

func (e *RefusedError) Unwrap() error {
	if e.Conflict == nil {
		return nil
	}
	return e.Conflict
}

// Tell sends a message to the run of a directory, which may have been moved while the run rested. What the run's status does not allow is refused
// with a *run.ConflictError, whether anybody works on the run or not.
func (o Operator) Tell(ctx context.Context, dir rundir.Dir, verb string, m workflows.Message) (workflows.Ack, error) {
	claim, err := dir.Claim()
	if err != nil {
		return workflows.Ack{}, err
	}
	if err := AtHome(o.Settings.StateDir, claim, dir); err != nil {
		return workflows.Ack{}, err
	}
	if most := o.Settings.Policy.Budget; verb == workflows.VerbBudget && most > 0 && m.USD > most {
		return workflows.Ack{}, &PolicyError{Differences: []string{fmt.Sprintf("a budget of %.2f USD is above policy.budget_usd, %.2f", m.USD, most)}}
	}
	now, err := dir.Now()
	if err != nil {
		return workflows.Ack{}, err
	}
	stands := o.Standing(ctx, dir.Seat(claim), now.State.Status)
	begun := now.Tail.Seq > 0
	if stands.Liveness == run.LiveOpen && begun || stands.Liveness == run.LiveUnknown {
		if verb == workflows.VerbResume && claim.Host == o.Host { // elsewhere the same folder may have another name
			m.Dir = dir.Root
		} else if err := o.rehome(ctx, claim, dir, now.State.Status); err != nil {
			return workflows.Ack{}, err
		}
		return o.Send(ctx, claim.RunID, verb, m)
	}
	_, open := now.State.Asks()
	c := run.Conflict(stands.Status, run.Operation(verb), run.Terms{Undecided: open})
	return workflows.Ack{}, &RefusedError{Verb: verb, Why: c.Error(), Conflict: c}
}

// rehome tells a run that rests where its directory is, if that was moved on this host: of other messages only a resume does that.
func (o Operator) rehome(ctx context.Context, claim run.Claim, dir rundir.Dir, status run.Status) error {
	if claim.Host != o.Host || status.Class() != run.OperatorPause {
		return nil
	}
	if err := o.attended(ctx, claim.RunID); err != nil {
		return &RefusedError{Verb: workflows.VerbRehome, Why: err.Error()}
	}
	var is workflows.DirectoryAnswer
	v, err := o.Client.QueryWorkflow(ctx, claim.RunID, "", workflows.QueryDirectory)
	if err != nil || v.Get(&is) != nil || is.Dir == dir.Root {
		return nil //nolint:nilerr // who does not answer this does not take the message either, and that says why
	}
	_, err = o.Send(ctx, claim.RunID, workflows.VerbRehome, workflows.Message{Dir: dir.Root})
	return err
}

// Send sends a message as an Update and gives the run's answer. The message is new each time: what makes a repetition harmless is the run's
// state, not the id.
func (o Operator) Send(ctx context.Context, runID, verb string, m workflows.Message) (workflows.Ack, error) {
	if m.By == "" {
		m.By = o.By
	}
	m = o.hidden(m)
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	if err := o.attended(ctx, runID); err != nil {
		return workflows.Ack{}, &RefusedError{Verb: verb, Why: err.Error()}
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
		UpdateID: uuid.NewString(), WorkflowID: runID, UpdateName: verb, Args: []any{m}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(ctx, &ack)
	}
	err = said(runID, verb, err)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		err = errors.Join(err, undo())
	}
	return ack, err
}

func said(runID, verb string, err error) error {
	var app *temporal.ApplicationError
	var missing *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &app):
		return &RefusedError{Verb: verb, Why: app.Message(), Conflict: workflows.ConflictIn(err)}
	case errors.As(err, &missing):
		return &RefusedError{Verb: verb, Why: fmt.Sprintf("run %s is not open (see `starter status %s`)", runID, runID), Closed: true}
	}
	return fmt.Errorf("%s run %s: %w", verb, runID, err)
}

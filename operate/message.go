package operate

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/google/uuid"

	"github.com/passbook-run/passbook/workflows"
)

// RefusedError says that a run did not accept a message, in its own words. Nothing has changed.
type RefusedError struct{ Verb, Why string }

func (e *RefusedError) Error() string { return fmt.Sprintf("%s refused: %s", e.Verb, e.Why) }

// Send sends a message as an Update and gives the run's answer. The message is new each time: what makes a repetition harmless is the run's
// state, not the id.
func (o Operator) Send(ctx context.Context, runID, verb string, m workflows.Message) (workflows.Ack, error) {
	if m.By == "" {
		m.By = o.By
	}
	m = o.hidden(m)
	var ack workflows.Ack
	h, err := o.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		UpdateID: uuid.NewString(), WorkflowID: runID, UpdateName: verb, Args: []any{m}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(ctx, &ack)
	}
	return ack, said(runID, verb, err)
}

func said(runID, verb string, err error) error {
	var app *temporal.ApplicationError
	var missing *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &app):
		return &RefusedError{Verb: verb, Why: app.Message()}
	case errors.As(err, &missing):
		return &RefusedError{Verb: verb, Why: fmt.Sprintf("run %s is not open (see `starter status %s`)", runID, runID)}
	}
	return fmt.Errorf("%s run %s: %w", verb, runID, err)
}

// Command goworkflows executes the work of test/bench with go-workflows on SQLite.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/cschleiden/go-workflows/backend"
	"github.com/cschleiden/go-workflows/backend/sqlite"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/core"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"

	"github.com/passbook-run/passbook/test/bench/peer"
)

// endTimeout is longer than a measurement.
const endTimeout = time.Hour

type engine struct {
	client *client.Client
	steps  *peer.Steps
}

func main() { peer.Main(open) }

func open(ctx context.Context, o peer.Options, steps *peer.Steps) (peer.Engine, func() error, error) {
	b := sqlite.NewSqliteBackend(filepath.Join(o.Dir, "workflows.sqlite"), sqlite.WithBackendOptions(
		backend.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))))
	ctx, stop := context.WithCancel(ctx)
	e := &engine{client.New(b), steps}
	w := worker.New(b, nil)
	closer := func() error {
		stop()
		return errors.Join(w.WaitForCompletion(), b.Close())
	}
	err := errors.Join(
		w.RegisterWorkflow(e.workflow),
		w.RegisterActivity(e.activity),
	)
	if err == nil {
		err = w.Start(ctx)
	}
	return e, closer, err
}

func (e *engine) workflow(ctx workflow.Context, w peer.Work) (answers int, err error) {
	for i := 1; i <= w.Steps; i++ {
		answer, err := workflow.ExecuteActivity[string](ctx, workflow.DefaultActivityOptions, e.activity, w, i).Get(ctx)
		if err != nil {
			return answers, err
		}
		if answer != "" || len(w.Agent) == 0 {
			answers++
		}
		if i == w.Wait {
			workflow.NewSignalChannel[string](ctx, "wake").Receive(ctx)
		}
	}
	return answers, nil
}

func (e *engine) activity(ctx context.Context, w peer.Work, step int) (string, error) {
	return e.steps.Do(ctx, w, step)
}

// Start returns both ids of an instance, because a client needs both.
func (e *engine) Start(ctx context.Context, id string, w peer.Work) (string, error) {
	i, err := e.client.CreateWorkflowInstance(ctx, client.WorkflowInstanceOptions{InstanceID: id}, e.workflow, w)
	if err != nil {
		return "", err
	}
	return i.InstanceID + "/" + i.ExecutionID, nil
}

func (e *engine) Await(ctx context.Context, name string) (int, error) {
	id, execution, ok := strings.Cut(name, "/")
	if !ok {
		return 0, fmt.Errorf("%q is not the name of an instance", name)
	}
	return client.GetWorkflowResult[int](ctx, e.client, core.NewWorkflowInstance(id, execution), endTimeout)
}

func (e *engine) Wake(ctx context.Context, name string) error {
	id, _, _ := strings.Cut(name, "/")
	return e.client.SignalWorkflow(ctx, id, "wake", "go")
}

func (e *engine) Fork(context.Context, string, int) (string, error) { return "", peer.ErrNotOffered }

func (e *engine) Revert(context.Context, string, int) error { return peer.ErrNotOffered }

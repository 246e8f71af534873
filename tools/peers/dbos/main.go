// Command dbos executes the work of test/bench with DBOS, on SQLite or PostgreSQL.
package main

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // DBOS opens sqlite: addresses with it

	"github.com/passbook-run/passbook/test/bench/peer"
)

// wakeTimeout is longer than a measurement.
const wakeTimeout = 24 * time.Hour

type engine struct {
	dbos    dbos.Context
	steps   *peer.Steps
	handles sync.Map // of workflows that this process has started, by name
}

func main() { peer.Main(open) }

func open(ctx context.Context, o peer.Options, steps *peer.Steps) (peer.Engine, func() error, error) {
	c, err := dbos.NewContext(ctx, dbos.Config{
		AppName: "bench", DatabaseURL: o.Address, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return nil, nil, err
	}
	e := &engine{dbos: c, steps: steps}
	dbos.RegisterWorkflow(c, e.workflow, dbos.WithWorkflowName("work"))
	return e, func() error { return dbos.Shutdown(c, time.Second) }, dbos.Launch(c)
}

func (e *engine) workflow(ctx dbos.Context, w peer.Work) (answers int, err error) {
	for i := 1; i <= w.Steps; i++ {
		answer, err := dbos.RunAsStep(ctx, func(ctx context.Context) (string, error) { return e.steps.Do(ctx, w, i) },
			dbos.WithStepName("step"))
		if err != nil {
			return answers, err
		}
		if answer != "" || len(w.Agent) == 0 {
			answers++
		}
		if i == w.Wait {
			if _, err := dbos.Recv[string](ctx, "wake", wakeTimeout); err != nil {
				return answers, err
			}
		}
	}
	return answers, nil
}

func (e *engine) Start(_ context.Context, id string, w peer.Work) (string, error) {
	h, err := dbos.RunWorkflow(e.dbos, e.workflow, w, dbos.WithWorkflowID(id))
	e.handles.Store(id, h)
	return id, err
}

// Await uses the handle of the start, which needs no polling.
func (e *engine) Await(_ context.Context, name string) (int, error) {
	if h, own := e.handles.Load(name); own {
		return h.(dbos.WorkflowHandle[int]).GetResult()
	}
	h, err := dbos.RetrieveWorkflow[int](e.dbos, name)
	if err != nil {
		return 0, err
	}
	return h.GetResult()
}

func (e *engine) Wake(_ context.Context, name string) error {
	return dbos.Send(e.dbos, name, "go", "wake")
}

func (e *engine) Fork(_ context.Context, name string, step int) (string, error) {
	h, err := dbos.ForkWorkflow[int](e.dbos, dbos.ForkWorkflowInput{OriginalWorkflowID: name, StartStep: uint(step - 1)})
	if err != nil {
		return "", err
	}
	return h.GetWorkflowID(), nil
}

func (e *engine) Revert(context.Context, string, int) error { return peer.ErrNotOffered }

// Command temporal executes the work of test/bench with the plain Temporal SDK, on the server that TEMPORAL_ADDRESS and
// the other variables of the SDK name.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/test/bench/peer"
)

const (
	queue     = "peers"
	heartbeat = 10 * time.Second // without one for this long a worker is lost, as in Passbook
)

type engine struct {
	client client.Client
	steps  *peer.Steps
}

func main() { peer.Main(open) }

func open(_ context.Context, _ peer.Options, steps *peer.Steps) (peer.Engine, func() error, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return nil, nil, err
	}
	options.Logger = log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	c, err := client.Dial(options)
	if err != nil {
		return nil, nil, err
	}
	e := &engine{c, steps}
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(work, workflow.RegisterOptions{Name: "work"})
	w.RegisterActivityWithOptions(e.step, activity.RegisterOptions{Name: "step"})
	closer := func() error {
		w.Stop()
		c.Close()
		return nil
	}
	return e, closer, w.Start()
}

func work(ctx workflow.Context, w peer.Work) (answers int, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Hour,
		HeartbeatTimeout: heartbeat})
	for i := 1; i <= w.Steps; i++ {
		var answer string
		if err := workflow.ExecuteActivity(ctx, "step", w, i).Get(ctx, &answer); err != nil {
			return answers, err
		}
		if answer != "" || len(w.Agent) == 0 {
			answers++
		}
		if i == w.Wait {
			workflow.GetSignalChannel(ctx, "wake").Receive(ctx, nil)
		}
	}
	return answers, nil
}

// step sends heartbeats while an agent works.
func (e *engine) step(ctx context.Context, w peer.Work, step int) (string, error) {
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		beats := time.NewTicker(heartbeat / 4)
		defer beats.Stop()
		for {
			select {
			case <-beats.C:
				activity.RecordHeartbeat(ctx)
			case <-ended:
				return
			}
		}
	}()
	return e.steps.Do(ctx, w, step)
}

func (e *engine) Start(ctx context.Context, id string, w peer.Work) (string, error) {
	r, err := e.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue}, "work", w)
	if err != nil {
		return "", err
	}
	return r.GetID(), nil
}

func (e *engine) Await(ctx context.Context, name string) (answers int, err error) {
	err = e.client.GetWorkflow(ctx, name, "").Get(ctx, &answers)
	return answers, err
}

func (e *engine) Wake(ctx context.Context, name string) error {
	return e.client.SignalWorkflow(ctx, name, "", "wake", "go")
}

// Fork is not offered: a reset keeps the id and ends the execution that it starts from.
func (e *engine) Fork(context.Context, string, int) (string, error) { return "", peer.ErrNotOffered }

// Revert resets a workflow to the task that scheduled the step.
func (e *engine) Revert(ctx context.Context, name string, step int) error {
	h := e.client.GetWorkflowHistory(ctx, name, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for scheduled := 0; h.HasNext(); {
		ev, err := h.Next()
		if err != nil {
			return err
		}
		a := ev.GetActivityTaskScheduledEventAttributes()
		if a == nil {
			continue
		}
		if scheduled++; scheduled == step {
			_, err := e.client.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
				Namespace:         "default",
				WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: name}, Reason: "bench",
				WorkflowTaskFinishEventId: a.GetWorkflowTaskCompletedEventId(), RequestId: fmt.Sprint(name, step),
			})
			return err
		}
	}
	return errors.New("the workflow has not scheduled this step")
}

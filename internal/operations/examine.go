package operations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/workflows/contract"
)

// ErrNoWorker means that no worker of this host can be asked.
var ErrNoWorker = errors.New("no worker runs on this machine")

// ExamineAgents asks the worker of this host for the version and the login of agents, as the calls of a run find them.
// Without a run they get what the calls of the next start get: on one host the environment of the operator, otherwise
// that of the worker.
func (o Operator) ExamineAgents(ctx context.Context, runID string,
	agents []pipeline.Agent) (out contract.ExamineResult, err error) {
	const timeout = time.Minute
	queue := contract.HostQueues(o.Settings.TaskQueue, o.Host).Dir
	found, err := o.Pollers(ctx, queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil {
		return out, err
	}
	if len(found.Identities) == 0 {
		return out, ErrNoWorker
	}
	id := "doctor-" + uuid.NewString()
	if runID == "" && HostBound(o.Settings.Store) && o.Environ != nil {
		expires := time.Now().Add(timeout)
		undo, err := environ.Save(o.Settings.StateDir, environ.Environment{RunID: id, By: "doctor",
			At: time.Now().UTC().Truncate(time.Millisecond), Expires: &expires,
			Variables: agent.AllowedEnv(o.Environ, VariablesOf(pipeline.Plan{Agents: agents}))})
		if err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, undo()) }()
		runID = id
	}
	in := contract.ExamineInput{RunID: runID}
	for _, a := range agents {
		in.Agents = append(in.Agents, contract.AgentAsked{Run: a.Run, Env: a.Env, Sandbox: a.Sandbox, Network: a.Network})
	}
	started, err := o.Client.ExecuteActivity(ctx, client.StartActivityOptions{ID: id, TaskQueue: queue,
		ScheduleToCloseTimeout: timeout, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary: "starter doctor: version and login of agents",
	}, contract.ExamineAgents, in)
	if err != nil {
		return out, fmt.Errorf("ask the worker: %w", err)
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = started.Get(waiting, &out)
	var late *temporal.TimeoutError
	if errors.As(err, &late) || errors.Is(waiting.Err(), context.DeadlineExceeded) {
		return out, fmt.Errorf("no answer within %s; it may be of an earlier version", timeout)
	}
	if err != nil {
		return out, fmt.Errorf("ask the worker: %w", err)
	}
	return out, nil
}

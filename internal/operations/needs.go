package operations

import (
	"context"
	"fmt"
	"strings"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/workflows/contract"
)

// MemoNeeds is the memo key of a run's workflow for the run's needs, which workers read.
const MemoNeeds = "needs"

// Needs are the requirements of a run on a shared store.
type Needs struct {
	Queue    string   `json:"queue"` // of its workflow tasks; derived from task_queue and store
	Store    string   `json:"store"` // without its secrets
	Programs []string `json:"programs"`
}

// needs returns the queue of a run's workflow tasks and the requirements of its calls. Nil: the run is bound to its
// host.
func needs(ctx context.Context, in contract.Input) (queue string, n *Needs, err error) {
	if HostBound(in.Target.Store) {
		return in.DirQueue, nil, nil
	}
	plan, err := storedPlan(ctx, in.Target.Store, in.Start.Plan)
	if err != nil {
		return "", nil, err
	}
	n = &Needs{Queue: contract.StoreQueue(in.Claim.TaskQueue, in.Target.Store), Store: in.Target.Store,
		Programs: plan.Programs()}
	if shown := config.Masked(n.Store); strings.Contains(shown, config.Mask) {
		n.Store = shown
	}
	return n.Queue, n, nil
}

// OpenNeeds returns the needs of all open runs on shared stores of the client's namespace. The server leaves out those
// that are bound to a host: there may be thousands, and every worker asks every few seconds.
func OpenNeeds(ctx context.Context, c client.Client, conv converter.DataConverter, taskQueue string) ([]Needs, error) {
	var out []Needs
	var token []byte
	for {
		page, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND TaskQueue NOT STARTS_WITH %s",
				contract.PipelineWorkflow, quoted(contract.HostQueues(taskQueue, "").Dir)), NextPageToken: token,
		})
		if err != nil {
			return nil, err
		}
		for _, x := range page.GetExecutions() {
			if n, ok := needsIn(x.GetMemo(), conv); ok {
				out = append(out, n)
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return out, nil
		}
	}
}

package operate

import (
	"context"
	"strings"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/work"
	"github.com/passbook-run/passbook/workflows"
)

// MemoNeeds is the memo of a run's workflow in which workers read what the run needs of a host.
const MemoNeeds = "needs"

// Needs is what a run on a store that hosts share needs of a host.
type Needs struct {
	Queue    string   `json:"queue"` // of its workflow tasks: it follows from task_queue and store
	Store    string   `json:"store"` // without its secrets
	Programs []string `json:"programs"`
}

// needs names the queue of a run's workflow tasks, and what its workers must have. nil: the run is bound to its host.
func needs(ctx context.Context, in workflows.Input) (queue string, n *Needs, err error) {
	if HostBound(in.Target.Store) {
		return in.DirQueue, nil, nil
	}
	plan, err := storedPlan(ctx, in.Target.Store, in.Start.Plan)
	if err != nil {
		return "", nil, err
	}
	n = &Needs{Queue: work.StoreQueue(in.Claim.TaskQueue, in.Target.Store), Store: in.Target.Store, Programs: plan.Programs()}
	if shown := config.Masked(n.Store); strings.Contains(shown, config.Mask) {
		n.Store = shown
	}
	return n.Queue, n, nil
}

// OpenNeeds are the needs of all open runs of the client's namespace.
func OpenNeeds(ctx context.Context, c client.Client, conv converter.DataConverter) ([]Needs, error) {
	var out []Needs
	var token []byte
	for {
		page, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: "WorkflowType = '" + workflows.Name + "' AND ExecutionStatus = 'Running'", NextPageToken: token,
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

package operations

import (
	"context"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/workflows/contract"
)

// takenWithin is how long a task may wait in a polled queue.
const takenWithin = 3 * time.Second

// Lack is one requirement of a run on a shared store, and the queue that workers poll which meet it.
type Lack struct {
	Queue string
	Kind  enumspb.TaskQueueType
	Words string // no worker …

	Optional bool // only some runs need it
}

// Lacks lists everything that a run may need, even if a worker has it.
func (n Needs) Lacks() []Lack {
	calls := contract.CallQueuePrefix(n.Queue)
	all := []Lack{
		{n.Queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW, "no worker reaches the store " + n.Store, false},
		{calls, enumspb.TASK_QUEUE_TYPE_ACTIVITY, "no worker reaches the store " + n.Store, false},
		{contract.BrowserQueue(calls), enumspb.TASK_QUEUE_TYPE_ACTIVITY,
			"no worker that reaches the store " + n.Store + " has a browser", true},
	}
	for _, program := range n.Programs {
		all = append(all, Lack{
			contract.ProgramQueue(calls,
				program), enumspb.TASK_QUEUE_TYPE_ACTIVITY,
			fmt.Sprintf("no worker that reaches the store %s has the program %s", n.Store, program), false,
		})
	}
	return all
}

// missing describes what an open run waits for because no worker has it; empty: nothing, or not known.
func (o Operator) missing(ctx context.Context, d *workflowservice.DescribeWorkflowExecutionResponse) string {
	n, ok := needsIn(d.GetWorkflowExecutionInfo().GetMemo(), o.Converter)
	if !ok {
		return ""
	}
	waiting := map[string]time.Time{}
	if t := d.GetPendingWorkflowTask(); t.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED {
		waiting[n.Queue] = t.GetScheduledTime().AsTime()
	}
	for _, p := range d.GetPendingActivities() {
		if p.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
			waiting[p.GetActivityOptions().GetTaskQueue().GetName()] = p.GetScheduledTime().AsTime()
		}
	}
	for _, l := range n.Lacks() {
		since, waits := waiting[l.Queue]
		if !waits || time.Since(since) < takenWithin {
			continue
		}
		if pollers, err := o.Pollers(ctx, l.Queue, l.Kind); err == nil && len(pollers.Identities) == 0 {
			return fmt.Sprintf("%s (queue %s, since %s)", l.Words, l.Queue, since.UTC().Format("2006-01-02 15:04 UTC"))
		}
	}
	return ""
}

// needsIn reads the needs of a run from the memo of its workflow. False: it is bound to its host, or another
// program's.
func needsIn(memo *commonpb.Memo, conv converter.DataConverter) (n Needs, ok bool) {
	if conv == nil {
		conv = converter.GetDefaultDataConverter()
	}
	p := memo.GetFields()[MemoNeeds]
	return n, p != nil && conv.FromPayload(p, &n) == nil
}

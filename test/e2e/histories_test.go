package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/test/histories"
)

var noCache = flag.Bool("no-cache", false, "each task of all tests executes the workflow again from its whole history")

// uncached is the setting of workers that keep no execution in memory.
const uncached = host.CacheVar + "=0"

// caching is that setting, if all tests are to have it.
func caching() []string {
	if *noCache {
		return []string{uncached}
	}
	return nil
}

// replayed wants the tasks of an execution not to have been on a worker's own queue, which has those that it keeps in
// memory.
func (h *environment) replayed(history *historypb.History) {
	if !slices.Contains(h.env, uncached) {
		return
	}
	for _, e := range history.Events {
		queue := e.GetWorkflowTaskScheduledEventAttributes().GetTaskQueue()
		if queue.GetKind() == enumspb.TASK_QUEUE_KIND_STICKY {
			h.t.Errorf("event %d: the workflow task went to a worker that kept the execution in memory", e.EventId)
		}
	}
}

var recordTo = flag.String("record-histories", "", "store the histories of all tests in this folder")

// replayHistories executes the workflow code once more on everything that the environment's server has executed, when
// it is stopped and at the end of the test.
func (h *environment) replayHistories() {
	c := h.dialAtTheEnd()
	if c == nil {
		return
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	h.stops++
	for n, e := range h.executions(ctx, c) {
		history, err := histories.Fetch(ctx, c, e.Execution.WorkflowId, e.Execution.RunId)
		if err != nil {
			h.t.Errorf("replay: %v", err)
			return
		}
		if len(history.Events) < 3 { // no worker has executed anything
			continue
		}
		h.replayed(history)
		if err := histories.Replay(history, histories.Options{}); err != nil {
			h.t.Errorf("replay %s: %v", e.Execution.WorkflowId, err)
		}
		if *recordTo != "" {
			name := fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(h.t.Name(), "/", "-"), h.stops, n+1)
			if err := histories.Write(*recordTo, name, history); err != nil {
				h.t.Error(err)
			}
		}
	}
}

// dialAtTheEnd returns a client of the server, or nil if none runs.
func (h *environment) dialAtTheEnd() client.Client {
	st := h.running()
	if st.Server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := dialServer(ctx, *st.Server)
	if err != nil { // the test has frozen it
		return nil
	}
	return c
}

// executions lists all executions of Passbook's workflows that the server knows.
func (h *environment) executions(ctx context.Context, c client.Client) (all []*workflowpb.WorkflowExecutionInfo) {
	ours, runs := histories.Types(), h.runs()
	var next []byte
	for {
		page, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{NextPageToken: next})
		if err != nil {
			h.t.Errorf("replay: %v", err)
			return all
		}
		for _, e := range page.Executions {
			if slices.Contains(ours, e.GetType().GetName()) && h.owns(e.GetExecution().GetWorkflowId(), runs) {
				all = append(all, e)
			}
		}
		if next = page.NextPageToken; len(next) == 0 {
			return all
		}
	}
}

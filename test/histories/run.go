package histories

import (
	"context"
	"fmt"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// ReplayRun executes the workflow code once more on the histories of all executions of a run, and returns their number.
// It stores them in a folder under a name; empty: nowhere.
func ReplayRun(ctx context.Context, c client.Client, id, folder, name string) (replayed int, err error) {
	page, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("WorkflowId = %q", id)})
	if err != nil {
		return 0, err
	}
	for _, e := range page.Executions {
		history, err := Fetch(ctx, c, id, e.Execution.RunId)
		if err != nil {
			return replayed, err
		}
		if len(history.Events) < 3 { // no worker has executed anything
			continue
		}
		if err := Replay(history, Options{}); err != nil {
			return replayed, fmt.Errorf("replay execution %s of %s: %w", e.Execution.RunId, id, err)
		}
		replayed++
		if folder == "" {
			continue
		}
		if err := Write(folder, fmt.Sprint(name, "-", replayed), history); err != nil {
			return replayed, err
		}
	}
	return replayed, nil
}

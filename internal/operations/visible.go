package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// pageSize is the number of executions per request.
const pageSize = 1000

// visible is the newest execution of a run as Temporal lists it.
type visible struct {
	status   enumspb.WorkflowExecutionStatus
	started  time.Time
	queue    string // of its workflow tasks
	pipeline string
	thread   string
	shows    run.Status // by its search attribute
	stage    string
	cost     float64
	score    *float64
	source   string
	mode     string
	pinned   *run.DeploymentVersion // nil: to no version
}

// query narrows a list as far as the server can: to a pipeline, and for open runs to status and stage. The status and
// stage of a closed execution do not help, because a later epoch may have others.
func (f Filter) query() string {
	parts := []string{"WorkflowType = '" + contract.PipelineWorkflow + "'"}
	if f.Pipeline != "" {
		parts = append(parts, "PassbookPipeline = "+quoted(f.Pipeline))
	}
	if f.ThreadID != "" {
		parts = append(parts, "PassbookThread = "+quoted(f.ThreadID))
	}
	if !f.openOnly() {
		return strings.Join(append(parts, "ExecutionStatus != 'ContinuedAsNew'"), " AND ")
	}
	var words []string
	for _, s := range f.Status {
		words = append(words, quoted(string(s)))
	}
	parts = append(parts, "ExecutionStatus = 'Running'", "PassbookStatus IN ("+strings.Join(words, ", ")+")")
	if f.Stage != "" {
		parts = append(parts, "PassbookStage = "+quoted(f.Stage))
	}
	return strings.Join(parts, " AND ")
}

// openOnly reports whether only runs with an open workflow are selected.
func (f Filter) openOnly() bool {
	for _, s := range f.Status {
		if s.Closed() || s == run.Unknown {
			return false
		}
	}
	return len(f.Status) > 0
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// executions returns the newest execution of every run that the filter may select, by run id. If the server lacks the
// search attributes, all are listed.
func (o Operator) executions(ctx context.Context, f Filter) (map[string]visible, error) {
	all, err := o.listed(ctx, f.query())
	var unknown *serviceerror.InvalidArgument
	if errors.As(err, &unknown) {
		all, err = o.listed(ctx, Filter{}.query())
	}
	if err != nil {
		return nil, fmt.Errorf("list the runs of namespace %s: %w", o.Namespace, err)
	}
	return all, nil
}

func (o Operator) listed(ctx context.Context, query string) (map[string]visible, error) {
	all := map[string]visible{}
	req := &workflowservice.ListWorkflowExecutionsRequest{Namespace: o.Namespace, PageSize: pageSize, Query: query}
	for {
		page, err := o.Client.ListWorkflow(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, x := range page.GetExecutions() {
			id, v := x.GetExecution().GetWorkflowId(), visibleOf(x)
			if run.OfLane(id) != "" {
				continue
			}
			if known, there := all[id]; !there || v.started.After(known.started) {
				all[id] = v
			}
		}
		if req.NextPageToken = page.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return all, nil
		}
	}
}

func visibleOf(x *workflowpb.WorkflowExecutionInfo) visible {
	fields := x.GetSearchAttributes().GetIndexedFields()
	v := visible{status: x.GetStatus(), started: x.GetStartTime().AsTime(), queue: x.GetTaskQueue(),
		pinned: pinnedBy(x)}
	v.pipeline, _ = field[string](fields, "PassbookPipeline")
	v.thread, _ = field[string](fields, "PassbookThread")
	v.shows, _ = field[run.Status](fields, "PassbookStatus")
	v.stage, _ = field[string](fields, "PassbookStage")
	v.source, _ = field[string](fields, "PassbookSource")
	v.mode, _ = field[string](x.GetMemo().GetFields(), "mode")
	v.cost, _ = field[float64](fields, "PassbookCostUSD")
	if score, there := field[float64](fields, "PassbookScore"); there {
		v.score = &score
	}
	return v
}

// field decodes one search attribute.
func field[T any](fields map[string]*commonpb.Payload, name string) (v T, there bool) {
	p, there := fields[name]
	return v, there && converter.GetDefaultDataConverter().FromPayload(p, &v) == nil
}

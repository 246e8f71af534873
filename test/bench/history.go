package main

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// weight is the size of the histories of a run, over all its executions.
type weight struct {
	events, bytes int64
	executions    int
}

// weigh goes back from the last execution of a run to its first.
func (h *env) weigh(ctx context.Context, id string) (weight, error) {
	var w weight
	err := h.executions(ctx, id, func(execution string) error {
		d, err := h.op.Client.DescribeWorkflowExecution(ctx, id, execution)
		if err != nil {
			return err
		}
		info := d.GetWorkflowExecutionInfo()
		w.events, w.bytes, w.executions = w.events+info.GetHistoryLength(), w.bytes+info.GetHistorySizeBytes(),
			w.executions+1
		return nil
	})
	return w, err
}

// executions visits each execution of a run, the last one first.
func (h *env) executions(ctx context.Context, id string, visit func(execution string) error) error {
	d, err := h.op.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return fmt.Errorf("describe run %s: %w", id, err)
	}
	for execution := d.GetWorkflowExecutionInfo().GetExecution().GetRunId(); execution != ""; {
		if err := visit(execution); err != nil {
			return fmt.Errorf("describe execution %s of run %s: %w", execution, id, err)
		}
		first, err := h.history(ctx, id, execution).Next()
		if err != nil {
			return fmt.Errorf("read the history of run %s: %w", id, err)
		}
		execution = first.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
	}
	return nil
}

// events is a history that is read in pages.
type events interface {
	HasNext() bool
	Next() (*historypb.HistoryEvent, error)
}

func (h *env) history(ctx context.Context, id, execution string) events {
	return h.op.Client.GetWorkflowHistory(ctx, id, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
}

// spent is how often something was done and how long it took: until a worker received it, and until it was done.
type spent struct {
	times      int
	wait, work time.Duration
}

// share adds up from a history where the time was spent: workflow tasks under their name, activities under their type.
func share(from events, into map[string]spent) error {
	type open struct {
		name      string
		scheduled time.Time
		begun     time.Time
	}
	tasks := map[int64]*open{}
	begin := func(scheduled int64, at time.Time) {
		if o := tasks[scheduled]; o != nil {
			o.begun = at
		}
	}
	end := func(scheduled int64, at time.Time) {
		if o := tasks[scheduled]; o != nil {
			s := into[o.name]
			into[o.name] = spent{s.times + 1, s.wait + o.begun.Sub(o.scheduled), s.work + at.Sub(o.begun)}
		}
	}
	for from.HasNext() {
		ev, err := from.Next()
		if err != nil {
			return err
		}
		at := ev.GetEventTime().AsTime()
		switch ev.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
			tasks[ev.GetEventId()] = &open{name: "workflow task", scheduled: at}
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
			begin(ev.GetWorkflowTaskStartedEventAttributes().GetScheduledEventId(), at)
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			end(ev.GetWorkflowTaskCompletedEventAttributes().GetScheduledEventId(), at)
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			scheduled := ev.GetActivityTaskScheduledEventAttributes()
			tasks[ev.GetEventId()] = &open{name: scheduled.GetActivityType().GetName(), scheduled: at}
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			begin(ev.GetActivityTaskStartedEventAttributes().GetScheduledEventId(), at)
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			end(ev.GetActivityTaskCompletedEventAttributes().GetScheduledEventId(), at)
		}
	}
	return nil
}

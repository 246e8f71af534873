// Package history reads what a workflow has projected out of its Temporal history.
package history

import (
	"cmp"
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Reader reads histories from a server.
type Reader struct {
	Client    client.Client
	Converter converter.DataConverter // the client's; nil: nothing is encrypted
}

// Source returns what an execution has projected: its claim, its newest segment, and the pieces of the journal that
// were written.
func (h Reader) Source(ctx context.Context, workflowID, runID string) (rundir.Source, error) {
	r := historyReader{conv: cmp.Or(h.Converter, converter.GetDefaultDataConverter()),
		inputs: map[int64]contract.ProjectInput{}, turns: map[int64]bool{}, seals: map[int64]bool{}}
	it := h.Client.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		ev, err := it.Next()
		if err != nil {
			return rundir.Source{}, fmt.Errorf("history of %s: %w", workflowID, err)
		}
		if err := r.take(ev); err != nil {
			return rundir.Source{}, fmt.Errorf("history of %s, event %d: %w", workflowID, ev.EventId, err)
		}
	}
	return r.src, nil
}

type historyReader struct {
	conv   converter.DataConverter
	src    rundir.Source
	inputs map[int64]contract.ProjectInput // by the id of the event that scheduled them
	turns  map[int64]bool                  // the inputs that are part of a turn
	seals  map[int64]bool
}

func (r *historyReader) take(ev *historypb.HistoryEvent) error {
	switch {
	case ev.GetWorkflowExecutionStartedEventAttributes() != nil:
		return r.started(ev.GetWorkflowExecutionStartedEventAttributes())
	case ev.GetActivityTaskScheduledEventAttributes() != nil:
		return r.scheduled(ev.EventId, ev.GetActivityTaskScheduledEventAttributes())
	case ev.GetActivityTaskCompletedEventAttributes() != nil:
		return r.completed(ev.GetActivityTaskCompletedEventAttributes())
	}
	return nil
}

func (r *historyReader) started(at *historypb.WorkflowExecutionStartedEventAttributes) error {
	var in contract.Input
	if err := r.conv.FromPayloads(at.Input, &in); err != nil {
		return err
	}
	r.src.Claim, r.src.Store = in.Claim, in.Target.Store
	if in.Snapshot != nil {
		r.src.Head = in.Snapshot.Head
	}
	return nil
}

func (r *historyReader) scheduled(id int64, at *historypb.ActivityTaskScheduledEventAttributes) error {
	switch at.ActivityType.GetName() {
	case contract.Project:
		var in contract.ProjectInput
		if err := r.conv.FromPayloads(at.Input, &in); err != nil {
			return err
		}
		r.inputs[id] = in
	case contract.Turn:
		var in contract.TurnInput
		if err := r.conv.FromPayloads(at.Input, &in); err != nil {
			return err
		}
		r.inputs[id], r.turns[id] = in.Project, true
	case contract.ArchiveSegment, contract.NextEpoch:
		r.seals[id] = true
	}
	return nil
}

func (r *historyReader) completed(at *historypb.ActivityTaskCompletedEventAttributes) error {
	if r.seals[at.ScheduledEventId] {
		var res struct {
			Head string `json:"head"` // of both results
		}
		if err := r.conv.FromPayloads(at.Result, &res); err != nil {
			return err
		}
		r.src.Head = cmp.Or(res.Head, r.src.Head)
		return nil
	}
	in, ok := r.inputs[at.ScheduledEventId]
	if !ok {
		return nil
	}
	res, err := r.result(at)
	if err != nil {
		return err
	}
	if res.Outcome == run.ProjectionWritten && len(in.Lines) > 0 {
		r.src.Batches = append(r.src.Batches, rundir.Batch{Epoch: in.Epoch, First: in.First, Prev: in.Prev,
			Lines: in.Lines, Head: in.Head})
	}
	return nil
}

// result returns the result of a projection, alone or in a turn.
func (r *historyReader) result(at *historypb.ActivityTaskCompletedEventAttributes) (contract.ProjectResult, error) {
	if r.turns[at.ScheduledEventId] {
		var res contract.TurnResult
		err := r.conv.FromPayloads(at.Result, &res)
		return res.Project, err
	}
	var res contract.ProjectResult
	err := r.conv.FromPayloads(at.Result, &res)
	return res, err
}

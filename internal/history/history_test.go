package history

import (
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// events builds a history.
type events struct {
	t *testing.T
	r historyReader
	n int64
}

func (e *events) payloads(v any) *commonpb.Payloads {
	e.t.Helper()
	p, err := e.r.conv.ToPayloads(v)
	require.NoError(e.t, err)
	return p
}

// take adds one event.
func (e *events) take(ev *historypb.HistoryEvent) int64 {
	e.t.Helper()
	e.n++
	ev.EventId = e.n
	require.NoError(e.t, e.r.take(ev))
	return e.n
}

// activity adds the start and the end of an activity.
func (e *events) activity(name string, in, out any) {
	e.t.Helper()
	id := e.take(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
		ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
			ActivityType: &commonpb.ActivityType{Name: name}, Input: e.payloads(in)}}})
	e.take(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
		ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: id,
			Result: e.payloads(out)}}})
}

// TestSourceOfARebuild: the newest segment, and every batch that was written, also those after the segment.
func TestSourceOfARebuild(t *testing.T) {
	e := &events{t: t, r: historyReader{conv: converter.GetDefaultDataConverter(),
		inputs: map[int64]contract.ProjectInput{}, turns: map[int64]bool{}, seals: map[int64]bool{}}}
	var in contract.Input
	in.Target.Store, in.Claim.RunID = "file:///store", "r"
	in.Snapshot = &contract.Snapshot{Head: "older"}
	e.take(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: e.payloads(in)}}})
	require.Equal(t, "r", e.r.src.Claim.RunID)
	require.Equal(t, "file:///store", e.r.src.Store)
	require.Equal(t, "older", e.r.src.Head)

	batch := func(first int64) contract.ProjectInput {
		return contract.ProjectInput{Target: contract.Target{Epoch: 2}, First: first, Prev: "before", Lines: []string{"line"}, Head: "head"}
	}
	written := contract.ProjectResult{Outcome: run.ProjectionWritten}
	e.activity(contract.Project, batch(1), written)
	e.activity(contract.Project, batch(2), contract.ProjectResult{Outcome: run.ProjectionBehind})
	e.activity(contract.ArchiveSegment, contract.ArchiveSegmentInput{}, contract.ArchiveSegmentResult{Head: "newer"})
	require.Equal(t, "newer", e.r.src.Head)
	e.activity(contract.Project, batch(2), written)
	e.activity(contract.Turn, contract.TurnInput{Project: batch(3)}, contract.TurnResult{Project: written})
	e.activity(contract.RunPass, contract.PassInput{}, contract.PassResult{})
	var firsts []int64
	for _, b := range e.r.src.Batches {
		firsts = append(firsts, b.First)
		require.Equal(t, 2, b.Epoch)
		require.Equal(t, run.Chain("before"), b.Prev)
		require.Equal(t, []string{"line"}, b.Lines)
		require.Equal(t, "head", b.Head)
	}
	require.Equal(t, []int64{1, 2, 3}, firsts)
	e.activity(contract.NextEpoch, contract.NextEpochInput{}, contract.NextEpochResult{Head: "of the directory"})
	require.Equal(t, "of the directory", e.r.src.Head)
}

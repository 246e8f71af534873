package e2e_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// TestReset has an operator reset the workflow to an earlier point. The directory is not cut: the journal goes on
// behind its tail.
func TestReset(t *testing.T) {
	t.Parallel()
	h := newEnv(t, uncached)
	h.spoil(slow("7", "6"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("007")
	h.starter("pause", dir)
	until(t, "the run is paused", func() bool { return statusIs(dir, run.Paused) })
	before := read(t, dir+"/events.jsonl")
	c, id := h.dial(), metaOf(t, dir).RunID
	_, err := c.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
		Reason: "test", RequestId: uuid.NewString(),
		WorkflowTaskFinishEventId: middle(t, c, id),
		ResetReapplyExcludeTypes: []enumspb.ResetReapplyExcludeType{enumspb.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL,
			enumspb.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE},
	})
	require.NoError(t, err)
	until(t, "the journal goes on", func() bool { return len(read(t, dir+"/events.jsonl")) > len(before) })
	until(t, "only a closed execution of the run is paused", func() bool {
		return counted(t, c, `PassbookStatus = "paused"`) == 1 && counted(t, c, pausedQuery) == 0
	})
	h.finish(dir)

	events := h.undisturbed(dir, 0)
	require.Equal(t, string(before), string(read(t, dir+"/events.jsonl")[:len(before)]))
	back := of[run.RunReverted](events, run.KindRunReverted)
	require.Len(t, back, 1)
	tail := lastOf(t, before)
	require.Equal(t, "reset", back[0].Cause)
	require.Equal(t, run.Range{First: back[0].To + 1, Last: tail}, back[0].Abandoned)
	require.Less(t, back[0].To, tail-5, "the reset did not go far back")
	require.Equal(t, run.KindRunReverted, events[tail].Kind, "the first line behind the tail says what was abandoned")
	for _, n := range stateOf(t, dir).PassRecords {
		require.Zero(t, n.RetryCount)
	}
	require.Len(t, stateOf(t, dir).PassRecords, 16)
}

// TestResetOfADoneRun has an operator reset runs that are done, to several points: nothing is written and nothing is
// called, and each execution completes with what the run has come to.
func TestResetOfADoneRun(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir := h.dir("run")
	h.begin(dir)
	h.finish(dir)
	done := tasks(t, h.dial(), metaOf(t, dir).RunID)
	h.resetsInVain(dir, done[0], done[1], done[len(done)/3], done[len(done)/2], done[2*len(done)/3])
	elsewhere := h.dir("again")
	h.starter("rebuild", metaOf(t, dir).RunID, "--output-dir", elsewhere)
	require.Equal(t, string(read(t, dir+"/events.jsonl")), string(read(t, elsewhere+"/events.jsonl")),
		"the newest history is that of a reset")

	asked := h.asksAboutThePlan("asked")
	done = tasks(t, h.dial(), metaOf(t, asked).RunID)
	h.starter("decide", asked, "--action", "continue")
	until(t, "the run is done", func() bool { return statusIs(asked, run.Done) })
	h.resetsInVain(asked, done[len(done)-1]) // to where it only waits
}

// resetsInVain resets the run of a directory that is done to each of these tasks.
func (h *environment) resetsInVain(dir string, done ...int64) {
	t, c, id := h.t, h.dial(), metaOf(h.t, dir).RunID
	t.Helper()
	var first workflows.Result
	original := c.GetWorkflow(t.Context(), id, "")
	require.NoError(t, original.Get(t.Context(), &first))
	before, err := digests(dir)
	require.NoError(t, err)
	calls := h.count("start", "")
	for _, task := range done {
		r, err := c.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
			Namespace: client.DefaultNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id,
				RunId: original.GetRunID()}, Reason: "test",
			RequestId: uuid.NewString(), WorkflowTaskFinishEventId: task,
			ResetReapplyExcludeTypes: []enumspb.ResetReapplyExcludeType{enumspb.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL,
				enumspb.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE},
		})
		require.NoError(t, err)
		var again workflows.Result
		require.NoError(t, c.GetWorkflow(t.Context(), id, r.RunId).Get(t.Context(), &again), "reset to event %d", task)
		require.Equal(t, first, again, "reset to event %d", task)
		d, err := c.DescribeWorkflowExecution(t.Context(), id, r.RunId)
		require.NoError(t, err)
		require.Contains(t, d.WorkflowExecutionInfo.Memo.GetFields(), workflows.MemoFinal, "reset to event %d", task)
		now, err := digests(dir)
		require.NoError(t, err)
		sameTree(t, before, now)
		require.Equal(t, calls, h.count("start", ""), "reset to event %d called an agent", task)
	}
	h.sound(dir)
}

// counted is how many executions a query finds.
func counted(t *testing.T, c client.Client, query string) int64 {
	t.Helper()
	n, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	require.NoError(t, err)
	return n.Count
}

// lastOf is the sequence number of the last line.
func lastOf(t *testing.T, raw []byte) int64 {
	t.Helper()
	n := int64(0)
	for _, b := range raw {
		if b == '\n' {
			n++
		}
	}
	return n
}

// middle is a completed workflow task in the middle of an open run's history.
func middle(t *testing.T, c client.Client, id string) int64 {
	t.Helper()
	done := tasks(t, c, id)
	require.Greater(t, len(done), 8)
	return done[len(done)/2]
}

// tasks are the events of all workflow tasks that were completed.
func tasks(t *testing.T, c client.Client, id string) (all []int64) {
	t.Helper()
	for it := c.GetWorkflowHistory(t.Context(), id, "", false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		e, err := it.Next()
		require.NoError(t, err)
		if e.GetWorkflowTaskCompletedEventAttributes() != nil {
			all = append(all, e.EventId)
		}
	}
	require.NotEmpty(t, all, "no workflow task was completed")
	return all
}

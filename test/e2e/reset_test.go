package e2e_test

import (
	"bytes"
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

// resets resets an execution of a run, or the current one, to a task, and returns the id of the new execution.
func (h *environment) resets(runID, of string, task int64, exclude ...enumspb.ResetReapplyExcludeType) string {
	h.t.Helper()
	r, err := h.dial().ResetWorkflowExecution(h.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: runID, RunId: of},
		Reason: "test", RequestId: uuid.NewString(), WorkflowTaskFinishEventId: task, ResetReapplyExcludeTypes: exclude,
	})
	require.NoError(h.t, err)
	return r.RunId
}

var withoutMessages = []enumspb.ResetReapplyExcludeType{enumspb.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL,
	enumspb.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE}

// TestReset resets a paused run to an earlier point. The journal continues behind its tail.
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
	done := tasks(t, c, id)
	h.resets(id, "", done[len(done)/2], withoutMessages...)
	until(t, "the journal continues", func() bool { return len(read(t, dir+"/events.jsonl")) > len(before) })
	until(t, "only a closed execution of the run is paused", func() bool {
		return counted(t, c, `PassbookStatus = "paused"`) == 1 && counted(t, c, pausedQuery) == 0
	})
	h.finish(dir)

	events := h.undisturbed(dir, 0)
	require.Equal(t, string(before), string(read(t, dir+"/events.jsonl")[:len(before)]))
	back := of[run.RunReverted](events, run.KindRunReverted)
	require.Len(t, back, 1)
	tail := int64(bytes.Count(before, []byte("\n")))
	require.Equal(t, "reset", back[0].Cause)
	require.Equal(t, run.Range{First: back[0].To + 1, Last: tail}, back[0].Abandoned)
	require.Less(t, back[0].To, tail-5, "the reset did not go far back")
	require.Equal(t, run.KindRunReverted, events[tail].Kind)
	require.Len(t, stateOf(t, dir).PassRecords, 16)
}

// TestResetOfADoneRun resets a run that is done, to several points: nothing is written and nothing is called, and each
// execution completes with the run's result.
func TestResetOfADoneRun(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	dir := h.asksAboutThePlan("asked")
	c, id := h.dial(), metaOf(t, dir).RunID
	open := tasks(t, c, id)
	h.starter("decide", dir, "--action", "continue")
	var first workflows.Result
	original := c.GetWorkflow(t.Context(), id, "")
	require.NoError(t, original.Get(t.Context(), &first))
	before := tree(t, dir)
	for _, task := range []int64{open[0], open[len(open)-1]} {
		execution := h.resets(id, original.GetRunID(), task, withoutMessages...)
		var again workflows.Result
		require.NoError(t, c.GetWorkflow(t.Context(), id, execution).Get(t.Context(), &again), "reset to event %d", task)
		require.Equal(t, first, again, "reset to event %d", task)
		sameTree(t, before, tree(t, dir))
	}
	rebuilt := h.dir("rebuilt")
	h.starter("rebuild", id, "--output-dir", rebuilt)
	require.Equal(t, string(read(t, dir+"/events.jsonl")), string(read(t, rebuilt+"/events.jsonl")),
		"the newest history is that of a reset")
}

// TestResetBeforeAnAnswer resets a halted run to before its answers, and to where its question was open: it asks again,
// whatever the server applies again of the messages.
func TestResetBeforeAnAnswer(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	for name, send := range map[string]func(c client.Client, id string, q run.Question) error{
		"signal without an id": func(c client.Client, id string, _ run.Question) error {
			return c.SignalWorkflow(t.Context(), id, "", workflows.VerbDecide,
				workflows.Message{Action: run.ActionHalt})
		},
		"Update": func(c client.Client, id string, q run.Question) error {
			_, err := send(t, c, id, workflows.VerbDecide, workflows.Message{Action: run.ActionHalt, ID: q.ID})
			return err
		},
	} {
		dir := h.asksAboutThePlan(name)
		c, id := h.dial(), metaOf(t, dir).RunID
		q, _ := metaOf(t, dir).State.Asks()
		open := tasks(t, c, id)
		for _, task := range []int64{open[len(open)-1], open[0]} {
			require.NoError(t, send(c, id, q))
			until(t, "the run is halted", func() bool { return statusIs(dir, run.Halted) })
			_ = c.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil) // it has ended
			h.resets(id, "", task)
			until(t, "it asks again", func() bool { return statusIs(dir, run.AwaitingPhaseHandoff) })
			q, _ = metaOf(t, dir).State.Asks()
		}
		h.starter("decide", dir, "--action", "continue")
		until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
		h.valid(dir)
	}
}

// TestResetBehindAnOpenQuestion resets a run to where its question was open, before an operator answered: no message is
// applied again, so the first answer counts.
func TestResetBehindAnOpenQuestion(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	dir := h.asksAboutThePlan("asked")
	c, id := h.dial(), metaOf(t, dir).RunID
	open := tasks(t, c, id)
	execution := h.resets(id, "", open[len(open)-1])
	until(t, "the reset execution has run", func() bool {
		d, err := c.DescribeWorkflowExecution(t.Context(), id, execution)
		require.NoError(t, err)
		return d.PendingWorkflowTask == nil
	})
	h.starter("decide", dir, "--action", "continue")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	h.valid(dir)
}

// counted is how many executions a query finds.
func counted(t *testing.T, c client.Client, query string) int64 {
	t.Helper()
	n, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	require.NoError(t, err)
	return n.Count
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

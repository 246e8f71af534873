package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
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

// TestReset resets a paused run to an earlier point. The run continues to wait, in the next epoch from its directory, and
// nothing is called again.
func TestReset(t *testing.T) {
	t.Parallel()
	h := newEnv(t, uncached)
	h.spoil(slow("7", "6"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("007")
	h.starter("pause", dir)
	until(t, "the run is paused", func() bool { return statusIs(dir, run.Paused) })
	c, id := h.dial(), metaOf(t, dir).RunID
	for epoch := 2; epoch <= 3; epoch++ {
		before := read(t, dir+"/events.jsonl")
		done := tasks(t, c, id)
		to := done[len(done)/2]
		if epoch == 3 { // to before the first epoch from the directory has written
			to = done[0]
		}
		h.resets(id, "", to, withoutMessages...)
		h.starter("status", dir)
		until(t, "the journal continues", func() bool { return metaOf(t, dir).State.Epoch == epoch })
		require.True(t, statusIs(dir, run.Paused))
		require.Equal(t, string(before), string(read(t, dir+"/events.jsonl")[:len(before)]))
	}
	until(t, "the open execution is shown as paused", func() bool { return counted(t, c, pausedQuery) == 1 })
	h.starter("resume", dir)
	h.finish(dir)

	events := h.undisturbed(dir, 0)
	require.Empty(t, of[run.RunReverted](events, run.KindRunReverted))
	waits := slices.DeleteFunc(of[run.RunResumed](events, run.KindRunResumed), func(r run.RunResumed) bool { return !r.Waits })
	require.Len(t, waits, 2)
	require.Regexp(t, `^its workflow had \d+ of the \d+ events of this directory`, waits[0].Why)
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
	var first contract.Result
	original := c.GetWorkflow(t.Context(), id, "")
	require.NoError(t, original.Get(t.Context(), &first))
	before := tree(t, dir)
	for _, task := range []int64{open[0], open[len(open)-1]} {
		execution := h.resets(id, original.GetRunID(), task, withoutMessages...)
		require.Contains(t, h.starter("status", dir), "done")
		var again contract.Result
		require.NoError(t, c.GetWorkflow(t.Context(), id, execution).Get(t.Context(), &again), "reset to event %d", task)
		require.Equal(t, first, again, "reset to event %d", task)
		sameTree(t, before, tree(t, dir))
	}
	rebuilt := h.dir("rebuilt")
	h.starter("rebuild", id, "--output-dir", rebuilt)
	require.Equal(t, string(read(t, dir+"/events.jsonl")), string(read(t, rebuilt+"/events.jsonl")),
		"the newest history is that of a reset")
}

// TestResetBeforeAnAnswer resets a halted run to before its answer, and to where its question was open: the first answer
// stays, whatever the server applies again of the messages.
func TestResetBeforeAnAnswer(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	dir := h.asksAboutThePlan("asked")
	c, id := h.dial(), metaOf(t, dir).RunID
	open := tasks(t, c, id)
	original := c.GetWorkflow(t.Context(), id, "")
	h.starter("decide", dir, "--action", "halt")
	require.NoError(t, original.Get(t.Context(), nil))
	before := tree(t, dir)
	for _, task := range []int64{open[len(open)-1], open[0]} {
		execution := h.resets(id, original.GetRunID(), task)
		var again contract.Result
		require.NoError(t, c.GetWorkflow(t.Context(), id, execution).Get(t.Context(), &again))
		require.Equal(t, run.Halted, again.Status)
		sameTree(t, before, tree(t, dir))
	}
	h.starter("resume", dir, "--force", "--reason", "halted by mistake")
	h.asked(dir, 2)
	h.starter("decide", dir, "--action", "continue")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	h.valid(dir)
}

// TestResetOfAnOpenQuestion resets a run to before it asked: the question stays open under its id, and is asked once.
func TestResetOfAnOpenQuestion(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	dir := h.asksAboutThePlan("asked")
	c, id := h.dial(), metaOf(t, dir).RunID
	q, _ := metaOf(t, dir).State.Asks()
	h.resets(id, "", tasks(t, c, id)[0])
	until(t, "the next epoch waits", func() bool { return metaOf(t, dir).State.Epoch == 2 })
	h.starter("decide", dir, "--action", "continue", "--id", q.ID)
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	require.Len(t, metaOf(t, dir).History.Handoffs, 1)
	h.valid(dir)
}

// TestDeletedDirectory deletes the directory of a run that waits: the next event finds it gone, and it is made again from
// the store and from history.
func TestDeletedDirectory(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	dir := h.asksAboutThePlan("asked")
	c, id := h.dial(), metaOf(t, dir).RunID
	before := read(t, dir+"/events.jsonl")
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, c.SignalWorkflow(t.Context(), id, "", contract.VerbLook, nil))
	require.NoError(t, c.SignalWorkflow(t.Context(), id, "", contract.VerbDecide, contract.Message{Action: run.ActionContinue}))
	require.NoError(t, c.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	require.True(t, statusIs(dir, run.Done))
	require.Equal(t, string(before), string(read(t, dir+"/events.jsonl")[:len(before)]))
	h.valid(dir)
}

// TestRestoredDatabase restores Temporal's database from backups of several moments. The directory counts: what was
// answered and paid for stays, and each command finds the run where it is.
func TestRestoredDatabase(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	config := h.definition(h.dir("definition"), `pipeline: asks
agent: {run: [sh, -c, "cat >/dev/null; echo Greet the world."], reply: text}
roles: {planner: {prompt: plan.md, gives: report}}
stages:
  - {name: plan, steps: [{role: planner}, {ask: 'Is this the right plan?'}]}
  - {name: more, steps: [{role: planner}, {ask: 'Is this the last one?'}]}
`, map[string]string{"plan.md": "Plan it.\n"})
	dir := h.dir("run")
	h.starter("run", "--config", config, "--output-dir", dir, "--detach")
	first := h.asked(dir, 1)
	atFirst := h.backUp("first question")
	h.starter("decide", dir, "--action", "continue", "--id", first.ID)
	second := h.asked(dir, 2)
	atSecond := h.backUp("second question")

	h.restore(atFirst) // before the decision
	require.Contains(t, h.starter("status", dir), "Is this the last one?")
	until(t, "the second epoch waits", func() bool { return metaOf(t, dir).State.Epoch == 2 })
	h.restore(atFirst) // before an earlier epoch, and a message comes first
	output, code := h.try("decide", dir, "--action", "halt", "--id", first.ID)
	require.NotZero(t, code, output)
	require.Contains(t, output, first.ID+" was already decided with continue: the first decision wins")
	until(t, "the third epoch waits", func() bool { return metaOf(t, dir).State.Epoch == 3 })
	q, open := metaOf(t, dir).State.Asks()
	require.True(t, open)
	require.Equal(t, second.ID, q.ID)
	h.starter("decide", dir, "--action", "continue", "--id", second.ID)
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	before := tree(t, dir)
	h.restore(atSecond) // after the end of the run
	require.Contains(t, h.starter("status", dir), "done")
	var r contract.Result
	require.NoError(t, h.dial().GetWorkflow(t.Context(), metaOf(t, dir).RunID, "").Get(t.Context(), &r))
	require.Equal(t, run.Done, r.Status)
	sameTree(t, before, tree(t, dir))
	require.Len(t, stateOf(t, dir).PassRecords, 2)
	h.valid(dir)
}

// backUp copies the database of the server, which is stopped meanwhile, and returns the folder of the copy.
func (h *environment) backUp(name string) string {
	h.t.Helper()
	h.starter("server", "stop", "--now")
	to := h.dir("backup of the " + name)
	require.NoError(h.t, os.CopyFS(to, os.DirFS(filepath.Join(h.state(), "server"))))
	h.starter("server", "start")
	return to
}

// restore kills server and worker, and starts them with the database of a backup.
func (h *environment) restore(from string) {
	h.t.Helper()
	h.crash(h.worker())
	h.kill(h.server())
	h.loseDatabase()
	databases, err := filepath.Glob(filepath.Join(from, "temporal-*"))
	require.NoError(h.t, err)
	for _, f := range databases {
		require.NoError(h.t, os.WriteFile(filepath.Join(h.state(), "server", filepath.Base(f)), read(h.t, f), 0o600))
	}
	h.starter("server", "start")
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

package e2e_test

import (
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// inputOf reads the input of a run's workflow out of its history, as every client of the namespace can.
func inputOf(t *testing.T, c client.Client, runID string) workflows.Input {
	t.Helper()
	events := c.GetWorkflowHistory(t.Context(), runID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	first, err := events.Next()
	require.NoError(t, err)
	var in workflows.Input
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(
		first.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in))
	return in
}

// theirPlan stores a plan with a command, as a user who may start workflows could.
func theirPlan(t *testing.T, url, command string) string {
	t.Helper()
	def, problems := pipeline.Parse("pipeline.yaml", []byte(`pipeline: theirs
agent: {reply: text, run: [claude, -p]}
roles: {judge: {gives: report, prompt: judge.md}}
stages: [{name: one, steps: [{run: "`+command+`"}, {role: judge}]}]
`), fstest.MapFS{"judge.md": {Data: []byte("Judge.")}})
	require.Empty(t, problems)
	s, err := store.Open(t.Context(), url)
	require.NoError(t, err)
	digest, err := s.PutJSON(t.Context(), pipeline.Expand(def))
	require.NoError(t, err)
	return string(digest)
}

// TestWorkNeedsGrant attacks a worker with everything that may start workflows in its namespace: nothing is executed.
func TestWorkNeedsGrant(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	dir, canary := h.asksAboutThePlan("run"), h.dir("canary")
	c := h.dial()
	in := inputOf(t, c, metaOf(t, dir).RunID)
	store, target := "file://"+h.dir("their-store"), h.dir("theirs")
	plan := theirPlan(t, store, "touch "+canary)
	theirs := func(in workflows.Input) workflows.Input {
		in.Target.Dir, in.Target.Store, in.Start.Plan = target, store, plan
		return in
	}
	without := theirs(in)
	without.Target.Grant, without.EpochGrant, without.Plans = "", "", nil
	carried := in
	carried.Snapshot = &workflows.Snapshot{State: run.State{Status: run.Running}}
	for _, row := range []struct {
		name, kind, message string
		input               any
	}{
		{"no grant", workflows.Name, "it has no grant", without},
		{"grants of another run", workflows.Name, "was not granted with the key", theirs(in)},
		{"state of an earlier execution", workflows.Name, "carry is only for an execution that continues", carried},
	} {
		id := uuid.NewString()
		if s, ok := row.input.(workflows.Input); ok {
			s.Target.RunID, s.Claim.RunID, s.Start.RunID = id, id, id
			row.input = s
		}
		w, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: in.DirQueue}, row.kind,
			row.input)
		require.NoError(t, err)
		require.ErrorContains(t, w.Get(t.Context(), nil), row.message, row.name)
	}
	require.ErrorContains(t, scheduleActivity(t, c, in.Calls, contract.RunPass, contract.PassInput{
		RunID: in.Target.RunID, Store: store, Call: "theirs/g0.001.1.-.1", Attempt: 1, TimeoutMS: 60_000, HeartbeatMS: 1000,
		At: contract.StepRef{PlanUse: contract.PlanUse{Plan: plan, PlanGrant: in.Plans[0].PlanGrant}, Round: 1, Step: 1},
	}), "was not granted with the key")
	require.NoFileExists(t, canary)
	require.NoDirExists(t, target)
}

// scheduleActivity schedules an activity on a queue of Passbook, with a separate workflow.
func scheduleActivity(t *testing.T, c client.Client, queue, activity string, in any) error {
	t.Helper()
	own := "queue-" + uuid.NewString()
	w := worker.New(c, own, worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			TaskQueue: queue, StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		}), activity, in).Get(ctx, nil)
	}, workflow.RegisterOptions{Name: "Theirs"})
	require.NoError(t, w.Start())
	defer w.Stop()
	e, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: uuid.NewString(), TaskQueue: own}, "Theirs")
	require.NoError(t, err)
	return e.Get(t.Context(), nil)
}

// shareKey returns the key file of hosts that work on the same runs.
func (h *environment) shareKey() string {
	h.t.Helper()
	path := h.dir("grant.key")
	require.NoError(h.t, os.WriteFile(path, []byte(h.starter("grant", "key")), 0o600))
	return path
}

package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// TestOrderOfReplies: those of earlier stages, then those of the group as its definition lists the members.
func TestOrderOfReplies(t *testing.T) {
	e := engineOf(run.State{})
	e.round.Steps = []contract.Step{{PlanStep: pipeline.PlanStep{Key: "work/1"},
		Roles: []contract.Role{{Name: "a"}, {Name: "b"}}}}
	reply := func(step, member string) run.Reply { return run.Reply{Step: step, Member: member} }
	require.Equal(t, []run.Reply{reply("plan/1", "x"), reply("work/1", "a"), reply("work/1", "b")},
		e.inOrder([]run.Reply{reply("work/1", "b"), reply("plan/1", "x"), reply("work/1", "a")}))
}

// TestValueOfAPass: what the condition of a loop compares.
func TestValueOfAPass(t *testing.T) {
	half := 2.5
	named := func(kind string) contract.Step {
		return contract.Step{PlanStep: pipeline.PlanStep{Kind: pipeline.StepKind(kind), As: "it"}}
	}
	command, asked := named(string(pipeline.KindRun)), named(string(pipeline.KindRole))
	res := contract.PassResult{Value: "failed", Verdict: "approved"}
	scored := res
	scored.Score = &half
	for name, row := range map[string]struct {
		step contract.Step
		role contract.Role
		res  contract.PassResult
		want string
	}{
		"not named": {contract.Step{}, contract.Role{Score: "score"}, scored, ""},
		"a command": {command, contract.Role{}, res, "failed"},
		"a score":   {asked, contract.Role{Score: "score"}, scored, "2.5"},
		"no score":  {asked, contract.Role{Score: "score"}, res, "null"},
		"a verdict": {asked, contract.Role{}, scored, "approved"},
	} {
		require.Equal(t, row.want, passOf(engineOf(run.State{}), row.step, row.role, "").value(&row.res), name)
	}
}

// TestFailedPassPausesOnce: not in a run that pauses anyway.
func TestFailedPassPausesOnce(t *testing.T) {
	for name, row := range map[string]struct {
		status  run.Status
		pause   bool
		failure *contract.PassResult
		pauses  bool
	}{
		"a failure":            {run.Running, false, &contract.PassResult{Outcome: run.CategoryUnknown}, true},
		"no failure":           {run.Running, false, nil, false},
		"a pause is requested": {run.Running, true, &contract.PassResult{}, false},
		"a paused run":         {run.Paused, false, &contract.PassResult{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := engineOf(run.State{Status: row.status})
			e.control.Pause = row.pause
			p := passOf(e, changeStep, changeStep.Roles[0], "")
			p.failure = row.failure
			withWorkflow(t, nil, func(ctx workflow.Context) error { return e.pauseForFailure(ctx, p) })
			require.Equal(t, row.pauses, len(e.j.pending) == 1)
		})
	}
}

// TestNoticesStarted: none is being started, and none waits for that.
func TestNoticesStarted(t *testing.T) {
	for _, row := range []struct {
		starting, pending int
		want              bool
	}{{0, 0, true}, {1, 0, false}, {0, 1, false}} {
		e := engineOf(run.State{})
		e.notices.starting = row.starting
		e.notices.pending = make([]NotifyInput, row.pending)
		require.Equal(t, row.want, e.noticesStarted())
	}
}

// TestRetryWaits, unless a message asks for it after the wait has begun.
func TestRetryWaits(t *testing.T) {
	e := engineOf(run.State{Status: run.Running})
	e.control.retryRequests = 1
	withWorkflow(t, nil, func(ctx workflow.Context) error {
		start := workflow.Now(ctx)
		if err := e.awaitRetry(ctx, 3, "no store", never); err != nil {
			return err
		}
		require.Equal(t, time.Duration(float64(8*time.Second)*e.in.Options.TimeScale), workflow.Now(ctx).Sub(start))
		workflow.Go(ctx, func(workflow.Context) { e.control.retryRequests++ })
		start = workflow.Now(ctx)
		err := e.awaitRetry(ctx, 3, "no store", never)
		require.Zero(t, workflow.Now(ctx).Sub(start))
		return err
	})
}

package workflows

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// causes end a wait.
type causes map[string]func(*loop)

var (
	resumes     = func(e *loop) { e.inbox.asked.Resume = true }
	wantsRevert = func(e *loop) { e.inbox.asked.Revert = &contract.PendingRevert{To: "cp-1"} }
	pauses      = func(e *loop) { e.inbox.asked.Pause = true }
	fails       = func(e *loop) { e.inbox.err = errors.New("a message cannot be journaled") }
	decides     = func(e *loop) { e.journal.now.Status = run.Running }
	ends        = func(e *loop) { e.children.known["child"].changed = true }
	retries     = func(e *loop) { e.inbox.requests++ }
	byMessage   = causes{"pause": pauses, "resume": resumes, "revert": wantsRevert, "error": fails}
)

// waiting are the rows of the table: the state of a run that waits, and what ends its wait.
var waiting = map[waitName]struct {
	state run.State
	ends  causes
}{
	waitPause:  {run.State{Status: run.Paused}, causes{"resume": resumes, "revert": wantsRevert, "error": fails}},
	waitLimit:  {run.State{Status: run.WaitingLimit}, byMessage},
	waitAnswer: {run.State{Status: run.AwaitingGateDecision}, causes{"decision": decides}},
	waitLanes: {run.State{Status: run.Running, RunID: "run", Stages: []run.StageRef{{Name: "work"}},
		Lanes: &run.Lanes{Count: 1, Begun: 1, Active: []run.Lane{{LanePlace: run.LanePlace{Key: "a"}}}}}, causes{
		"pause": pauses, "revert": wantsRevert, "error": fails, "newer": func(e *loop) { e.journal.newer = true },
		"a lane": func(e *loop) { e.children.known["run.1.a"].changed = true }, "decision": func(e *loop) {
			e.journal.now.Decided = &run.Decided{ID: "gate:1", Kind: run.QuestionGate, Phase: "work"}
		}, "end": func(e *loop) { e.journal.now.Status = run.Cancelled },
	}},
	waitProjects: {oneProject(run.Running), causes{"pause": pauses, "revert": wantsRevert, "error": fails, "a project": ends}},
	waitBlocked:  {oneProject(run.AwaitingGateDecision), causes{"decision": decides, "error": fails, "a project": ends}},
	waitAttempt:  {run.State{Status: run.Running}, causes{"pause": pauses}},
	waitDisk:     {run.State{Status: run.Paused}, causes{"a request": retries}},
	waitHost:     {run.State{Status: run.Running}, causes{"a request": retries}},
	waitEnds:     {oneProject(run.Running), causes{"a project": ends}},
	waitChecks: {onePull(run.ForChecks, run.ChecksPending), causes{"resume": resumes, "revert": wantsRevert, "error": fails,
		"checks": observes(run.PullSeen{Checks: run.ChecksPassed})}},
	waitReview: {onePull(run.ForReview, run.ChecksPassed), causes{"resume": resumes, "revert": wantsRevert, "error": fails,
		"merge": observes(run.PullSeen{Merged: true}), "conflict": observes(run.PullSeen{Checks: run.ChecksPassed, Conflict: true})}},
}

func onePull(reason, checks string) run.State {
	return run.State{Status: run.Paused, Reason: reason, Forge: &run.ForgeState{
		Ref: run.ForgeRef{After: &run.After{Max: 5}}, Pull: &run.Pull{Number: 1, PullSeen: run.PullSeen{Checks: checks}}}}
}

func observes(seen run.PullSeen) func(*loop) {
	return func(e *loop) {
		f := *e.journal.now.Forge
		pull := *f.Pull
		pull.PullSeen, f.Pull = seen, &pull
		e.journal.now.Forge = &f
	}
}

func oneProject(s run.Status) run.State {
	return run.State{Status: s, Projects: []run.ProjectState{
		{ProjectRef: run.ProjectRef{Alias: "web", RunID: "child"}, Outcome: run.ProjectRunning},
	}}
}

// TestWaits: each wait lasts until its time, ends at once by each of its causes, and is continued by the next execution if
// its row is, unless it is in the middle of a step.
func TestWaits(t *testing.T) {
	require.Len(t, waiting, len(waits))
	for name, row := range waiting {
		t.Run(waits[name].name, func(t *testing.T) {
			const most = time.Hour
			standing := func(suggested, inStep bool, cause func(*loop), before ...func(*loop)) (due bool, took time.Duration,
				ended error) {
				e := loopIn(row.state)
				e.in.Target.RunID, e.in.Start.Stages = "run", row.state.Stages
				e.children.known = map[string]*child{"child": {}, "run.1.a": {}}
				requests, until := e.inbox.requests, most
				for _, already := range before {
					until = -time.Second
					already(e)
				}
				inside(t, func(ctx workflow.Context) error {
					e.journal.mu = workflow.NewMutex(ctx)
					start := workflow.Now(ctx)
					workflow.Go(ctx, func(ctx workflow.Context) {
						_ = workflow.Sleep(ctx, time.Minute) // the wait has begun
						cause(e)
					})
					due, ended = e.wait(ctx, wait{name: name, until: start.Add(until), inStep: inStep,
						wakes: func() bool { return e.inbox.requests != requests }})
					took = workflow.Now(ctx).Sub(start)
					return nil
				}, func(env *testsuite.TestWorkflowEnvironment) { env.SetContinueAsNewSuggested(suggested) })
				return due, took, ended
			}
			due, took, err := standing(false, false, func(*loop) {})
			require.NoError(t, err)
			require.True(t, due)
			require.Equal(t, most, took)
			for what, cause := range row.ends {
				late, _, err := standing(false, false, func(*loop) {}, cause)
				require.True(t, err == nil || errors.Is(err, errNewer), what)
				require.False(t, late, "it has ended, although its time has passed: %s", what)
				due, took, err := standing(false, false, cause)
				require.NoError(t, err, what)
				require.False(t, due, what)
				require.Equal(t, time.Minute, took, what)
			}
			_, took, err = standing(true, false, func(*loop) {})
			if waits[name].carried {
				require.ErrorIs(t, err, errContinueAsNew)
				require.Zero(t, took)
			} else {
				require.NoError(t, err)
			}
			due, _, err = standing(true, true, func(*loop) {})
			require.NoError(t, err)
			require.True(t, due, "only this execution can continue it")
		})
	}
}

// TestWaitsAreShown: the query `held` has what a full disk or a host holds up.
func TestWaitsAreShown(t *testing.T) {
	for name, want := range map[waitName]contract.HeldAnswer{
		waitDisk: {Held: true, Message: "no space", RetryAt: "2026-01-02T04:04:05.000Z"},
		waitHost: {Waiting: true, Message: "no space", RetryAt: "2026-01-02T04:04:05.000Z"},
	} {
		e := loopIn(run.State{Status: run.Running})
		inside(t, func(ctx workflow.Context) error {
			_, err := e.wait(ctx, wait{name: name, until: workflow.Now(ctx).Add(time.Hour), cause: "no space"})
			return err
		})
		require.Equal(t, want, e.host.held)
	}
}

// TestWaitsAreDocumented: README.md has the table.
func TestWaitsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, row := range waits {
		carried := map[bool]string{true: "yes", false: "no"}[row.carried]
		require.Contains(t, string(raw), "| "+strings.Join([]string{row.name, row.meaning, row.ends, carried}, " | ")+" |\n")
	}
}

package workflows_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

// fakeServer keeps what a workflow asks of the server, with its options.
type fakeServer struct {
	interceptor.WorkflowInboundInterceptorBase
	interceptor.WorkflowOutboundInterceptorBase
	activities map[string][]workflow.ActivityOptions
	local      map[string][]workflow.LocalActivityOptions
	children   []workflow.ChildWorkflowOptions
	timers     []string // their summaries

	original      string // execution that was reset, if any
	answersAnyway bool   // calls of a cancelled run complete, as with WaitForCancellation; the test environment cancels
}

// observes has a server observe the workflows of a worker.
type observes struct {
	interceptor.WorkerInterceptorBase
	server **fakeServer // to nil: none does
}

func (o *observes) InterceptWorkflow(_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	server := *o.server
	if server == nil || server.WorkflowInboundInterceptorBase.Next != nil { // or a child
		return next
	}
	server.WorkflowInboundInterceptorBase.Next = next
	return server
}

func (s *fakeServer) Init(out interceptor.WorkflowOutboundInterceptor) error {
	s.WorkflowOutboundInterceptorBase.Next = out
	return s.WorkflowInboundInterceptorBase.Next.Init(s)
}

func (s *fakeServer) GetInfo(ctx workflow.Context) *workflow.Info {
	info := *s.WorkflowOutboundInterceptorBase.Next.GetInfo(ctx)
	info.OriginalRunID = cmp.Or(s.original, info.OriginalRunID)
	return &info
}

func (s *fakeServer) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	s.activities[name] = append(s.activities[name], workflow.GetActivityOptions(ctx))
	if s.answersAnyway && (name == contract.RunPass || name == contract.Turn) {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
	}
	return s.WorkflowOutboundInterceptorBase.Next.ExecuteActivity(ctx, name, args...)
}

func (s *fakeServer) ExecuteLocalActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	s.local[name] = append(s.local[name], workflow.GetLocalActivityOptions(ctx))
	return s.WorkflowOutboundInterceptorBase.Next.ExecuteLocalActivity(ctx, name, args...)
}

func (s *fakeServer) ExecuteChildWorkflow(ctx workflow.Context, name string,
	args ...any) workflow.ChildWorkflowFuture {
	s.children = append(s.children, workflow.GetChildWorkflowOptions(ctx))
	return s.WorkflowOutboundInterceptorBase.Next.ExecuteChildWorkflow(ctx, name, args...)
}

func (s *fakeServer) AwaitWithOptions(ctx workflow.Context, o workflow.AwaitOptions,
	condition func() bool) (bool, error) {
	s.timers = append(s.timers, o.TimerOptions.Summary)
	return s.WorkflowOutboundInterceptorBase.Next.AwaitWithOptions(ctx, o, condition)
}

func newFakeServer() *fakeServer {
	return &fakeServer{activities: map[string][]workflow.ActivityOptions{},
		local: map[string][]workflow.LocalActivityOptions{}}
}

// observed records what the next execution of w asks of the server.
func (w *harness) observed() *harness {
	w.server = newFakeServer()
	return w
}

// onDirectory are the options of activities on the host of the run directory.
func onDirectory(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{TaskQueue: "passbook-dir-here", StartToCloseTimeout: 5 * time.Minute,
		HeartbeatTimeout: 10 * time.Second, Summary: summary, RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
			NonRetryableErrorTypes: []string{"payloadSizeError", contract.ErrClaimed, contract.ErrNewer, contract.ErrDamaged},
		}}
}

// onCheckout are those of activities on checkouts.
func onCheckout(summary string) workflow.ActivityOptions {
	o := onDirectory(summary)
	o.StartToCloseTimeout, o.RetryPolicy.MaximumAttempts = time.Hour, 6
	o.RetryPolicy.NonRetryableErrorTypes = append(o.RetryPolicy.NonRetryableErrorTypes, contract.ErrNoSlot)
	return o
}

// ofCall are those of one delivery of a call.
func ofCall(queue, id, summary string, timeout, wait time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{ActivityID: id, TaskQueue: queue, ScheduleToStartTimeout: wait,
		StartToCloseTimeout: timeout + 10*time.Minute, HeartbeatTimeout: 10 * time.Second, WaitForCancellation: true,
		Summary: summary, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}}
}

// TestActivityOptions: timeouts, retries, queues, ids and summaries of what a run asks its workers for.
func TestActivityOptions(t *testing.T) {
	for name, row := range map[string]struct {
		src  string
		hurt func(*harness)
		want map[string]workflow.ActivityOptions // the first of the type
	}{
		"passes": {twoPasses, func(w *harness) { w.in.Options.Turns = false },
			map[string]workflow.ActivityOptions{
				contract.Open: onDirectory("open the run directory"), contract.Project: onDirectory("events 1 to 3"),
				contract.ArchiveSegment: onDirectory("archive the journal"),
				contract.RunPass:        ofCall("passbook-calls", "pass-001", "[build] Step 1/2 — Builder", 10*time.Minute, 0),
			}},
		"a turn": {twoPasses, func(*harness) {}, map[string]workflow.ActivityOptions{
			contract.Turn: ofCall("passbook-calls", "pass-001", "[build] Step 1/2 — Builder", 10*time.Minute, 0)}},
		"a paused run": {twoPasses, func(w *harness) {
			w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
			w.onPause(func() {
				w.signal("resume", nil)
			})
		}, map[string]workflow.ActivityOptions{contract.Inspect: onDirectory("inspect the artifact")}},
		"a lost directory": {twoPasses, func(w *harness) { w.dir.before = map[int]func(){2: w.dir.lose} },
			map[string]workflow.ActivityOptions{contract.Rebuild: onDirectory("rebuild the lost run directory")}},
		"a delivery": {judged, func(*harness) {}, map[string]workflow.ActivityOptions{
			contract.SyncWorkspace: onCheckout("sync the changes of 001 implementer to the checkout"),
			contract.Deliver:       onCheckout("inspect the changes to deliver"),
		}},
		"a loop": {aLoop, func(w *harness) { w.agent.scores = []float64{4} }, map[string]workflow.ActivityOptions{
			contract.TakeScreenshots: ofCall("passbook-calls", "screenshots-1", "screenshots of round 1", 5*time.Minute, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, row.src).observed()
			row.hurt(w)
			w.done()
			for activity, want := range row.want {
				require.NotEmpty(t, w.server.activities[activity], activity)
				got := w.server.activities[activity][0]
				require.Equal(t, want, got, activity)
			}
			for activity, all := range w.server.local {
				require.Equal(t, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute,
					RetryPolicy: &temporal.RetryPolicy{
						InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
						NonRetryableErrorTypes: []string{"payloadSizeError", contract.ErrBadInput, contract.ErrNoStore},
					}}, all[0], activity)
			}
		})
	}
}

// TestActivityIDsAreUnique: a cancelled activity still holds its id.
func TestActivityIDsAreUnique(t *testing.T) {
	w := newHarness(t, aGroup).observed()
	w.agent.will(groupCall("critic-B", "1"), goes(transient))
	w.agent.will(groupCall("critic-B", "2"), goes(transient))
	w.done()
	var ids []string
	for _, o := range w.server.activities[contract.RunPass] {
		ids = append(ids, o.ActivityID)
	}
	slices.Sort(ids)
	require.Equal(t, []string{"look/1-1-critic-A", "look/1-1-critic-B", "look/1-1-critic-B-2", "look/1-1-critic-B-3",
		"look/1-1-critic-C"}, ids)
}

// TestTimersHaveSummaries: the Web UI shows what a run waits for.
func TestTimersHaveSummaries(t *testing.T) {
	for name, row := range map[string]struct {
		src  string
		hurt func(*harness)
		want string
	}{
		"another attempt": {twoPasses, func(w *harness) { w.agent.will(call(1, 1), goes(transient)) },
			"before attempt 2 of 001 builder: claude-p-exit-nonzero"},
		"another delivery": {twoPasses, func(w *harness) {
			w.agent.will(call(1, 1), times(2, breaks(temporal.NewHeartbeatTimeoutError()))...)
		}, "before the next delivery of 001 builder"},
		"a full disk": {twoPasses, func(w *harness) {
			w.dir.full = 2
			w.env.RegisterDelayedCallback(func() { w.signal("resume", nil) }, time.Minute)
		}, "before the next attempt at writing to a full disk"},
		"a program": {twoPasses, func(w *harness) { w.agent.will(call(1, 1), breaks(noProgram())) },
			"before the next attempt: 001 builder: start agent scripted: not found"},
		"screenshots": {aLoop, func(w *harness) { w.shots.fails, w.agent.scores = 1, []float64{4} },
			"before the next screenshot attempt"},
		"a limit": {twoPasses, func(w *harness) { w.agent.will(call(1, 1), meets(run.LimitRate, 0)) },
			"until 2026-01-02T03:04:35.000Z: rate of claude -p"},
		"a reminder": {oneAsk, func(w *harness) {
			w.in.Start.Waits = run.Waits{RemindMS: time.Hour.Milliseconds()}
			w.waitsInPlan()
			w.dir.when(run.KindQuestionReminded, func() { w.signal("decide", message{"action": "continue"}) })
		}, "until the reminder for build:1:6:reply of"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, row.src).observed()
			row.hurt(w)
			w.done()
			require.Contains(t, w.server.timers, row.want)
		})
	}
}

// TestNoticesAreChildren: a notice has its own workflow, which outlives the run.
func TestNoticesAreChildren(t *testing.T) {
	w := newHarness(t, twoPasses+twoReceivers).observed()
	w.done()
	require.Len(t, w.server.children, 1)
	got := w.server.children[0]
	require.Equal(t, "notice/run-1/11", got.WorkflowID)
	require.Equal(t, "end of run run-1", got.StaticSummary)
	require.Equal(t, enumspb.PARENT_CLOSE_POLICY_ABANDON, got.ParentClosePolicy)
	require.Equal(t, enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, got.WorkflowIDReusePolicy)
}

// TestNotifyOptions: each receiver has its own times.
func TestNotifyOptions(t *testing.T) {
	s := newFakeServer()
	env := workflows.NewTestEnvironment(&observes{server: &s})
	workflows.Register(env, nil)
	env.RegisterActivityWithOptions(func(context.Context, contract.NotifyInput) error { return nil },
		activity.RegisterOptions{Name: contract.Notify})
	env.ExecuteWorkflow(contract.NotifyWorkflow, contract.NoticeInput{DirQueue: "passbook-dir-here",
		Notice: contract.Notice{Event: "pause"}, Receivers: []contract.Receiver{
			{Index: 2, Receiver: run.Receiver{Name: "bell", TimeoutMS: 5000, GiveUpMS: 60_000}}}})
	require.NoError(t, env.GetWorkflowError())
	got := s.activities[contract.Notify][0]
	require.Equal(t, workflow.ActivityOptions{TaskQueue: "passbook-dir-here", ScheduleToCloseTimeout: time.Minute,
		StartToCloseTimeout: 15 * time.Second, Summary: "pause: bell", RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 5 * time.Minute,
			NonRetryableErrorTypes: []string{"payloadSizeError", contract.ErrBadInput},
		}}, got)
}

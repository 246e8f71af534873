package operations

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

func TestNoWorker(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	at := func(ago time.Duration) string { return run.Time(now.Add(-ago)) }
	const there = "17@elsewhere@"
	shared := contract.StoreQueue("q", "s3://b")
	open := run.NewEffectiveStatus(run.Running, run.LiveOpen, "")
	bound, free := run.Claim{Store: "file:///s", Host: "h1", TaskQueue: "q"},
		run.Claim{Store: "s3://b", Host: "h1", TaskQueue: "q"}
	for _, row := range []struct {
		name      string
		claim     run.Claim
		effective run.EffectiveStatus
		pollers   map[string]*taskqueuepb.PollerInfo
		want      *run.NoWorker
	}{
		{"polled", bound, open, map[string]*taskqueuepb.PollerInfo{"q-dir-h1": poller(there, now)}, nil},
		{"a poll waits for a minute", bound, open,
			map[string]*taskqueuepb.PollerInfo{"q-dir-h1": poller(there, now.Add(-time.Minute))}, nil},
		{"a worker elsewhere was lost", bound, open,
			map[string]*taskqueuepb.PollerInfo{"q-dir-h1": poller(there, now.Add(-2*time.Minute))},
			&run.NoWorker{Queues: []string{"q-dir-h1"}, Since: at(2 * time.Minute)}},
		{"a worker of this machine was killed just now", bound, open,
			map[string]*taskqueuepb.PollerInfo{"q-dir-h1": poller(endedHere(t), now.Add(-time.Second))},
			&run.NoWorker{Queues: []string{"q-dir-h1"}, Since: at(time.Second)}},
		{"none that the server remembers", bound, open, nil, &run.NoWorker{Queues: []string{"q-dir-h1"}}},
		{"the host of the directory is away", free, open,
			map[string]*taskqueuepb.PollerInfo{shared: poller(there, now)},
			&run.NoWorker{Queues: []string{"q-dir-h1"}}},
		{"no worker executes workflows", free, open, map[string]*taskqueuepb.PollerInfo{shared: poller(there,
			now.Add(-3*time.Minute)), "q-dir-h1": poller(there, now)},
			&run.NoWorker{Queues: []string{shared}, Since: at(3 * time.Minute)}},
		{"the earliest counts", free, open, map[string]*taskqueuepb.PollerInfo{shared: poller(there,
			now.Add(-3*time.Minute)), "q-dir-h1": poller(there, now.Add(-4*time.Minute))},
			&run.NoWorker{Queues: []string{shared, "q-dir-h1"}, Since: at(4 * time.Minute)}},
		{"a paused run waits too: nothing answers a message", bound,
			run.NewEffectiveStatus(run.Paused, run.LiveOpen, ""), nil,
			&run.NoWorker{Queues: []string{"q-dir-h1"}}},
		{"closed", bound, run.NewEffectiveStatus(run.Done, run.LiveClosed, ""), nil, nil},
		{"unknown", bound, run.NewEffectiveStatus(run.Running, run.LiveUnknown, ""), nil, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := Operator{Client: &fakeTemporal{pollers: row.pollers}}
			require.Equal(t, row.want, o.NoWorker(t.Context(), row.claim, row.effective))
			o.WorkerStarts = true
			require.Nil(t, o.NoWorker(t.Context(), row.claim, row.effective))
		})
	}
}

// TestListAsksOnceForEachQueue however many runs it shows.
func TestListAsksOnceForEachQueue(t *testing.T) {
	f := &fakeTemporal{described: map[string]enumspb.WorkflowExecutionStatus{}}
	var rows []Row
	for i := range 50 {
		id := fmt.Sprintf("run-%d", i)
		f.described[id] = isOpen
		rows = append(rows, Row{RunID: id, begun: true, EffectiveStatus: run.EffectiveStatus{Recorded: run.Running},
			claim: run.Claim{RunID: id, Store: "s3://b", Host: fmt.Sprintf("h%d", i%2), TaskQueue: "q"}})
	}
	l := must(Operator{Client: f}.List(t.Context(), rows, nil, Filter{}))(t)
	for _, r := range l.Runs {
		require.NotNil(t, r.EffectiveStatus.NoWorker, r.RunID)
	}
	require.ElementsMatch(t, []string{contract.StoreQueue("q", "s3://b"), "q-dir-h0", "q-dir-h1"}, f.asked)
}

// of is a worker of a version; "" is one without a version.
func of(build string) *taskqueuepb.PollerInfo {
	p := poller("17@elsewhere@", time.Now())
	p.DeploymentOptions = &deploymentpb.WorkerDeploymentOptions{DeploymentName: "passbook", BuildId: build}
	if build != "" {
		p.DeploymentOptions.WorkerVersioningMode = enumspb.WORKER_VERSIONING_MODE_VERSIONED
	}
	return p
}

func TestNoWorkerOfTheVersion(t *testing.T) {
	v := func(build string) *run.DeploymentVersion {
		return &run.DeploymentVersion{Deployment: "passbook", BuildID: build}
	}
	pinned := map[string]any{versioningBehavior: "Pinned", deploymentVersion: "passbook:v1"}
	auto := map[string]any{versioningBehavior: "AutoUpgrade", deploymentVersion: "passbook:v1"}
	routes := func(current, ramping string) *taskqueuepb.TaskQueueVersioningInfo {
		r := &taskqueuepb.TaskQueueVersioningInfo{}
		if current != "" {
			r.CurrentDeploymentVersion = &deploymentpb.WorkerDeploymentVersion{DeploymentName: "passbook", BuildId: current}
		}
		if ramping != "" {
			r.RampingVersionPercentage = 10
			r.RampingDeploymentVersion = &deploymentpb.WorkerDeploymentVersion{DeploymentName: "passbook", BuildId: ramping}
		}
		return r
	}
	for name, row := range map[string]struct {
		attributes map[string]any
		routes     *taskqueuepb.TaskQueueVersioningInfo
		polls      string
		want       *run.NoWorker // its queues and times are not compared
		fix        string
	}{
		"pinned, and its build polls": {pinned, routes("v2", ""), "v1", nil, ""},
		"pinned to a build that does not poll": {pinned, routes("v2", ""), "v2",
			&run.NoWorker{Version: v("v1"), Pinned: true, Polls: v("v2")}, "Start a worker of build v1, or move the run " +
				"to the current version: temporal workflow update-options --workflow-id r " +
				"--versioning-override-behavior auto_upgrade"},
		"pinned, and only a worker without a version polls": {pinned, routes("v2", ""), "",
			&run.NoWorker{Version: v("v1"), Pinned: true}, "Start a worker of build v1, or move the run"},
		"auto-upgrade": {auto, routes("v2", ""), "v2", nil, ""},
		"auto-upgrade, and the current build does not poll": {auto, routes("v2", ""), "v1",
			&run.NoWorker{Version: v("v2"), Polls: v("v1")}, "Start a worker of build v2, or make the build that polls the " +
				"current one: temporal worker deployment set-current-version --deployment-name passbook --build-id v1"},
		"not begun, and the ramping build polls": {nil, routes("v2", "v3"), "v3", nil, ""},
		"without a version":                      {nil, nil, "", nil, ""},
		"no version is current": {nil, nil, "v1", &run.NoWorker{Polls: v("v1")}, "Make a version current: temporal " +
			"worker deployment set-current-version --deployment-name passbook --build-id v1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeTemporal{executions: []*workflowpb.WorkflowExecutionInfo{execution(t, "r", 1, isOpen, nil)},
				versions: row.routes, pollers: map[string]*taskqueuepb.PollerInfo{"q": of(row.polls)}}
			for key, value := range row.attributes {
				f.executions[0].SearchAttributes.IndexedFields[key] = payloadOf(t, value)
			}
			got := Operator{Client: f}.polled().noWorker(t.Context(), run.EffectiveStatus{Liveness: run.LiveOpen},
				[]taskQueue{{"q", enumspb.TASK_QUEUE_TYPE_WORKFLOW}}, Operator{Client: f}.pinnedRun("r"))
			if row.want == nil {
				require.Nil(t, got)
			} else {
				require.Equal(t, []string{"q"}, got.Queues)
				require.Contains(t, got.Fix("r", "starter worker"), row.fix)
				got.Queues, got.Since = nil, ""
				require.Equal(t, row.want, got)
			}
			require.Equal(t, row.routes != nil || row.polls != "", f.detailed > 0, "only a deployment costs a request")
		})
	}
}

// waitingRun is an open workflow with pending work; without an answer, no worker answers the query.
func waitingRun(answer *contract.HeldAnswer, pending ...*workflowpb.PendingActivityInfo) *fakeTemporal {
	f := &fakeTemporal{details: &workflowservice.DescribeWorkflowExecutionResponse{PendingActivities: pending}}
	if answer != nil {
		f.answers = map[string]any{contract.QueryHeld: *answer}
	}
	return f
}

// level is a run that works, and whose directory and workflow agree.
var level = run.EffectiveStatus{ShownStatus: run.Running.Shown(), Recorded: run.Running, Live: run.Running, Liveness: run.LiveOpen}

func TestHeldNamesMissingCapabilities(t *testing.T) {
	waits := func(queue string, ago time.Duration) *fakeTemporal {
		return waitingRun(nil, &workflowpb.PendingActivityInfo{
			ActivityType:    &commonpb.ActivityType{Name: contract.RunPass},
			State:           enumspb.PENDING_ACTIVITY_STATE_SCHEDULED,
			ScheduledTime:   timestamppb.New(time.Now().Add(-ago)),
			ActivityOptions: &activitypb.ActivityOptions{TaskQueue: &taskqueuepb.TaskQueue{Name: queue}},
		})
	}
	const claude, here = "q-calls-claude", ""
	mine := contract.ProgramQueue("q-calls", "/opt/my agent")
	store, busy := waitingRun(nil), waits(claude, time.Minute)
	store.details.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{
		State: enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED, ScheduledTime: timestamppb.New(time.Now().Add(-time.Hour))}
	busy.pollers = map[string]*taskqueuepb.PollerInfo{claude: poller("1@elsewhere@", time.Now())}
	for _, row := range []struct {
		name   string
		store  string // which the run needs; empty: it is bound to its host
		server *fakeTemporal
		want   string // beginning; empty: nothing blocks it
	}{
		{"a program", "s3://b", waits(claude, time.Minute),
			"no worker that reaches the store s3://b has the program claude (queue q-calls-claude, since "},
		{"a program with a path", "s3://b", waits(mine, time.Minute),
			"no worker that reaches the store s3://b has the program /opt/my agent (queue " + mine},
		{"a browser", "s3://b", waits("q-browser", time.Minute),
			"no worker that reaches the store s3://b has a browser (queue q-browser"},
		{"the store", "s3://b", store, "no worker reaches the store s3://b (queue q,"},
		{"busy workers", "s3://b", busy, ""},
		{"a task of this moment", "s3://b", waits(claude, 0), ""},
		{"a run that is bound to its host", here, waits(claude, time.Minute), ""},
		{"a wait of the workflow", "s3://b",
			waitingRun(&contract.HeldAnswer{Waiting: true, Message: "list s3://b: the store is not reachable"}),
			"list s3://b: the store is not reachable"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.store != here {
				needs := Needs{Queue: "q", Store: row.store, Programs: []string{"claude", "/opt/my agent"}}
				row.server.details.WorkflowExecutionInfo = &workflowpb.WorkflowExecutionInfo{
					Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{MemoNeeds: payloadOf(t, needs)}}}
			}
			held := Operator{Client: row.server}.Held(t.Context(), "x", level)
			if row.want == "" {
				require.Nil(t, held)
				return
			}
			require.NotNil(t, held)
			require.True(t, strings.HasPrefix(held.Cause, row.want), held.Cause)
			require.False(t, held.DiskFull)
		})
	}
}

// TestHeldNamesFailingWorkflowTask: a run whose worker cannot continue its workflow is not healthy. Attempts that timed
// out are no failures: no worker answered.
func TestHeldNamesFailingWorkflowTask(t *testing.T) {
	completed := &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
		WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{
			WorkerVersion: &commonpb.WorkerVersionStamp{BuildId: "old"}}}} //nolint:staticcheck // the server fills it
	failed := &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowTaskFailedEventAttributes{
		WorkflowTaskFailedEventAttributes: &historypb.WorkflowTaskFailedEventAttributes{Identity: "7@here@",
			Failure: &failurepb.Failure{Message: "nondeterministic workflow: event 7"}}}}
	for name, row := range map[string]struct {
		attempt int32
		history []*historypb.HistoryEvent
		want    *run.Held
	}{
		"fails": {7, []*historypb.HistoryEvent{completed, failed}, &run.Held{Cause: "its workflow task failed, attempt 7, " +
			"last with: nondeterministic workflow: event 7. Worker 7@here has build new, and build old continued " +
			"the run last: start a worker of that build"}},
		"failed once": {2, []*historypb.HistoryEvent{completed, failed}, nil},
		"timed out":   {7, []*historypb.HistoryEvent{failed, completed}, nil},
	} {
		server := waitingRun(nil)
		server.details.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{Attempt: row.attempt}
		server.history = row.history
		server.pollers = map[string]*taskqueuepb.PollerInfo{"": {Identity: "7@here@",
			DeploymentOptions: &deploymentpb.WorkerDeploymentOptions{BuildId: "new"}}}
		require.Equal(t, row.want, Operator{Client: server}.Held(t.Context(), "x", level), name)
		if row.want == nil {
			continue
		}
		server.details.WorkflowExecutionInfo = &workflowpb.WorkflowExecutionInfo{Status: isOpen}
		server.pollers[""].LastAccessTime = timestamppb.Now()
		server.update = func(string) error {
			return client.NewWorkflowUpdateServiceTimeoutOrCanceledError(context.DeadlineExceeded)
		}
		_, err := Operator{Client: server}.Send(t.Context(), "x", contract.VerbDecide, contract.Message{Action: "continue"})
		require.ErrorContains(t, err, row.want.Cause)

		server.executions = []*workflowpb.WorkflowExecutionInfo{execution(t, "x", 1, isOpen, nil)}
		list := must(Operator{Client: server}.List(t.Context(), nil, nil, Filter{}))(t)
		require.Equal(t, row.want, list.Runs[0].EffectiveStatus.Held)
	}
}

func TestHeld(t *testing.T) {
	failing := func(attempt int32) []*workflowpb.PendingActivityInfo {
		return []*workflowpb.PendingActivityInfo{
			{ActivityType: &commonpb.ActivityType{Name: "RunPass"}, Attempt: 1},
			{ActivityType: &commonpb.ActivityType{Name: "Project"}, Attempt: attempt,
				LastFailure: &failurepb.Failure{Message: "open /runs/x/events.jsonl: permission denied"}},
		}
	}
	waiting := func(beat *commonpb.Payloads) *workflowpb.PendingActivityInfo {
		id := "pass-012" + contract.HostClaim{Host: "far", Until: "2026-01-02T03:04:05.000Z"}.Suffix()
		return &workflowpb.PendingActivityInfo{ActivityId: id, HeartbeatDetails: beat, Attempt: 1}
	}
	ahead := level
	ahead.Live = run.Paused
	full := &contract.HeldAnswer{Held: true, Message: "write /runs/x: no space left on device"}
	for _, row := range []struct {
		name      string
		effective run.EffectiveStatus
		server    *fakeTemporal
		want      *run.Held
		queries   int
	}{
		{"a full disk", ahead, waitingRun(full),
			&run.Held{Cause: "write /runs/x: no space left on device", DiskFull: true}, 1},
		{"paused for something else", ahead, waitingRun(&contract.HeldAnswer{}), nil, 1},
		{"no worker", ahead, waitingRun(nil), nil, 1},
		{"at work", level, waitingRun(full, failing(1)[:1]...), nil, 0},
		{"at work in the workflow", level, waitingRun(&contract.HeldAnswer{}), nil, 1},
		{"work that fails", level, waitingRun(nil, failing(7)...),
			&run.Held{Cause: "Project failed, last with: open /runs/x/events.jsonl: permission denied"}, 0},
		{"work that failed once", level, waitingRun(nil, failing(2)...), nil, 0},
		{"waits for another host", level, waitingRun(nil, waiting(nil)), &run.Held{
			Waits: true,
			Cause: "host far may still be making the call, and no worker answers there; start one, or wait: the " +
				"call is made elsewhere after 2026-01-02T03:04:05.000Z",
		}, 0},
		{"has found the other host", level, waitingRun(nil, waiting(&commonpb.Payloads{})), nil, 0},
		{"closed", run.EffectiveStatus{Liveness: run.LiveClosed, Recorded: run.Done},
			waitingRun(full, failing(7)...), nil, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, Operator{Client: row.server}.Held(t.Context(), "x", row.effective))
			require.Equal(t, row.queries, row.server.queried)
		})
	}
}

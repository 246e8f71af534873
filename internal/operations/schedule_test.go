package operations

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/secrets"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// emptyServer has no workflow, and counts those that are started.
type emptyServer struct {
	client.Client
	started *[]workflows.Input
	err     error
}

func (s emptyServer) DescribeWorkflowExecution(context.Context, string,
	string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, serviceerror.NewNotFound("workflow not found")
}

func (s emptyServer) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	return nil, serviceerror.NewNotFound("workflow not found")
}

func (s emptyServer) DescribeTaskQueue(context.Context, string,
	enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	return &workflowservice.DescribeTaskQueueResponse{}, nil
}

func (s emptyServer) WorkflowService() workflowservice.WorkflowServiceClient { return fakeCluster{} }

func (s emptyServer) ExecuteWorkflow(_ context.Context, _ client.StartWorkflowOptions, _ any,
	args ...any) (client.WorkflowRun, error) {
	*s.started = append(*s.started, args[0].(workflows.Input))
	return nil, s.err
}

const reads = "pipeline: reads\nagent: {run: [the-agent], reply: text, env: [DEPLOY_KEY]}\nroles:\n  reader: " +
	"{prompt: read.md, gives: report}\nstages:\n  - name: read\n    steps:\n      - role: reader\n"

// scheduleHost is a host with a schedule of a definition, and an operator of its worker.
func scheduleHost(t *testing.T, server emptyServer) (Operator, contract.Occurrence) {
	t.Helper()
	root := t.TempDir()
	redact, err := secrets.New(config.Settings{}, nil)
	require.NoError(t, err)
	o := Operator{
		Client: server, Host: "here", Embedded: true, Redact: redact,
		Environ: []string{"PATH=/created/bin", "DEPLOY_KEY=correct-horse", "OTHER=hidden"},
		Settings: config.Settings{StateDir: filepath.Join(root, "state"),
			Store: "file://" + filepath.Join(root, "of-the-worker"), TaskQueue: "passbook"},
	}
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	write("pipeline.yaml", reads)
	write("read.md", "Read it.\n")
	due := contract.Occurrence{
		Schedule: contract.Schedule{Name: "nightly", Host: "here", Config: filepath.Join(root, "pipeline.yaml"),
			Root: filepath.Join(root, "runs"), Store: "file://" + filepath.Join(root, "store"), Task: "Read all."},
		At: "2026-01-02T03:04:05.000Z", Execution: "execution-1",
	}
	def, err := o.definitionOf(due)
	require.NoError(t, err)
	_, err = o.handOverSchedule("nightly", "schedule create", def.Plan)
	require.NoError(t, err)
	o.Environ = nil // a worker has none
	return o, due
}

func TestStartDueStartsOneRunInANewDirectory(t *testing.T) {
	var started []workflows.Input
	server := emptyServer{started: &started, err: serviceerror.NewUnavailable("the server is away")}
	o, due := scheduleHost(t, server)
	_, err := o.StartDue(t.Context(), due)
	require.ErrorContains(t, err, "the server is away")
	require.NotErrorAs(t, err, new(*temporal.ApplicationError), "another attempt may help")

	server.err = nil
	o.Client = server
	first, err := o.StartDue(t.Context(), due)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(due.Root, "nightly-20260102-030405"), first.Directory)
	require.Len(t, started, 2)
	require.Equal(t, started[0].Claim, started[1].Claim, "another attempt is for the same run")
	claim, err := projector.At(first.Directory).Claim()
	require.NoError(t, err)
	require.Equal(t, first.RunID, claim.RunID)
	require.Equal(t, run.Scheduled{Name: "nightly", At: due.At, Execution: due.Execution}, claim.Schedule)
	require.Equal(t, due.Store, claim.Store, "the store of who created it")
	require.Equal(t, "Read all.", started[1].Start.Task)
	handed, err := environ.Load(o.Settings.StateDir, claim.RunID)
	require.NoError(t, err)
	require.Equal(t, []string{"DEPLOY_KEY=correct-horse", "PATH=/created/bin"}, handed.Variables)

	due.Execution = "execution-2" // the same time, backfilled
	second, err := o.StartDue(t.Context(), due)
	require.NoError(t, err)
	require.Equal(t, first.Directory+"-2", second.Directory)
	require.NotEqual(t, first.RunID, second.RunID)
}

func TestStartDueReadsTheDefinitionAgain(t *testing.T) {
	for name, row := range map[string]struct {
		change func(t *testing.T, o Operator, due contract.Occurrence) error
		want   string
	}{
		"deleted": {func(_ *testing.T, _ Operator, due contract.Occurrence) error { return os.Remove(due.Config) },
			"no such file"},
		"a prompt is gone": {func(_ *testing.T, _ Operator, due contract.Occurrence) error {
			return os.Remove(filepath.Join(filepath.Dir(due.Config), "read.md"))
		}, "read.md"},
		"invalid": {func(_ *testing.T, _ Operator, due contract.Occurrence) error {
			return os.WriteFile(due.Config, []byte(reads+"stage: x\n"), 0o600)
		}, "pipeline.yaml:9"},
		"environment gone": {func(_ *testing.T, o Operator, due contract.Occurrence) error {
			return environ.Remove(schedulesDir(o.Settings.StateDir), due.Name)
		}, "starter schedule unpause nightly"},
	} {
		t.Run(name, func(t *testing.T) {
			var started []workflows.Input
			o, due := scheduleHost(t, emptyServer{started: &started})
			require.NoError(t, row.change(t, o, due))
			_, err := o.StartDue(t.Context(), due)
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, contract.ErrNotStarted, app.Type())
			require.True(t, app.NonRetryable())
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, err, "schedule nightly, due at 2026-01-02T03:04:05.000Z")
			require.Empty(t, started)
		})
	}
}

func TestStartDueFindsTheRunFirst(t *testing.T) {
	var started []workflows.Input
	o, due := scheduleHost(t, emptyServer{started: &started})
	first, err := o.StartDue(t.Context(), due)
	require.NoError(t, err)
	line := fmt.Sprintf(`{"seq":1,"ts":"2026-01-02T03:04:05.000Z","kind":"run.start","phase":null,`+
		`"payload":{"pipeline":"reads","run_id":%q}}`+"\n", first.RunID)
	require.NoError(t, os.WriteFile(filepath.Join(first.Directory, layout.EventsFile), []byte(line), 0o600))
	require.NoError(t, os.Remove(due.Config)) // the attempt that started it was lost, and the file is gone since
	again, err := o.StartDue(t.Context(), due)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Len(t, started, 1)
}

func TestNewScheduleCheckReportsEveryError(t *testing.T) {
	err := NewSchedule{Schedule: contract.Schedule{Name: "../x"}, Every: time.Millisecond, Cron: []string{" "},
		Overlap: "terminate-other"}.Check()
	for _, want := range []string{`NAME "../x"`, "--every 1ms: the shortest interval is 1s", `--cron ""`,
		"--overlap terminate-other: write one of allow-all"} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, NewSchedule{Schedule: contract.Schedule{Name: "x"}}.Check(),
		"--cron EXPRESSION or --every DURATION")
	require.NoError(t, NewSchedule{Schedule: contract.Schedule{Name: "x"}, Cron: []string{"@daily"}}.Check())
}

func TestOccurrenceReportsWhatItWaitsFor(t *testing.T) {
	require.Contains(t, waitsFor(&workflowservice.DescribeWorkflowExecutionResponse{}),
		"no worker of its host takes it")
	require.Contains(t,
		waitsFor(&workflowservice.DescribeWorkflowExecutionResponse{
			PendingActivities: []*workflowpb.PendingActivityInfo{{}},
		}), "no worker of its host takes it")
}

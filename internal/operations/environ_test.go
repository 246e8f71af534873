package operations

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// deaf is a server that gives one answer to whoever starts a workflow or sends an Update.
type deaf struct {
	client.Client
	err  error
	sent *workflows.Input
}

func (d deaf) UpdateWorkflow(context.Context, client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	return nil, d.err
}

func (d deaf) DescribeWorkflowExecution(context.Context, string,
	string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, d.err
}

func (d deaf) DescribeTaskQueue(context.Context, string,
	enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	return nil, d.err
}

func (d deaf) ExecuteWorkflow(_ context.Context, _ client.StartWorkflowOptions, _ any,
	args ...any) (client.WorkflowRun, error) {
	if d.sent != nil {
		*d.sent = args[0].(workflows.Input)
	}
	return nil, d.err
}

var small = pipeline.Plan{
	Version: pipeline.PlanVersion, Pipeline: "small",
	Agents: []pipeline.Agent{{Run: []string{"mine"}, Env: []string{"MY_KEY"}}, {Run: []string{pipeline.Scripted}}},
	Notify: []pipeline.Notify{{Env: []string{"DISPLAY"}}, {WebhookEnv: "HOOK", SecretEnv: "HOOK_KEY"}},
}

// terminal is an operator at a terminal with an environment, on a machine with one run.
func terminal(t *testing.T, answer error) (Operator, projector.Dir) {
	t.Helper()
	root := t.TempDir()
	o := Operator{
		Client: deaf{err: answer}, Settings: config.Settings{StateDir: filepath.Join(root, "state"),
			Store: "file://" + filepath.Join(root, "store")}, Host: "here",
		Environ: []string{"PATH=/new/bin", "MY_KEY=new", "HOOK=https://hook", "OTHER=hidden", "CLAUDECODE=1",
			"ANTHROPIC_API_KEY=key"},
	}
	d := journaled(t, o, "run-1",
		`{"seq":1,"ts":"2026-01-02T03:04:05.000Z","kind":"run.start","phase":null,"payload":{"pipeline":"small",`+
			`"run_id":"run-1"}}`)
	raw, err := json.Marshal(small)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(d.Path(layout.PlanFile)), 0o700))
	require.NoError(t, os.WriteFile(d.Path(layout.PlanFile), raw, 0o600))
	return o, d
}

// journaled is the directory of a run with these events.
func journaled(t *testing.T, o Operator, id string, lines ...string) projector.Dir {
	t.Helper()
	d := projector.At(filepath.Join(filepath.Dir(o.Settings.StateDir), "runs", id))
	require.NoError(t, d.Take(run.Claim{Version: 1, RunID: id, Pipeline: "small", Store: o.Settings.Store, Host: o.Host,
		CreatedAt: "2026-01-02T03:04:05.000Z"}))
	s, err := store.Open(t.Context(), o.Settings.Store)
	require.NoError(t, err)
	defer s.Close()
	p, err := d.Project(t.Context(), blobs.Of(s), projector.Batch{Epoch: 1, First: 1, Lines: lines})
	require.NoError(t, err)
	require.Equal(t, run.ProjectionWritten, p.Outcome)
	require.NoError(t, Index(o.Settings.StateDir, id, d.Root))
	return d
}

func given(t *testing.T, o Operator, id string) environ.Environment {
	t.Helper()
	e, err := environ.Load(o.Settings.StateDir, id)
	require.NoError(t, err)
	return e
}

func none(t *testing.T, o Operator, id string) {
	t.Helper()
	require.NoFileExists(t, filepath.Join(o.Settings.StateDir, "environ", id+".json"))
}

var allowed = []string{"ANTHROPIC_API_KEY=key", "HOOK=https://hook", "MY_KEY=new", "PATH=/new/bin"}

func TestResumePassesItsEnvironment(t *testing.T) {
	o, _ := terminal(t, serviceerror.NewUnavailable("its answer is lost"))
	_, err := o.Send(t.Context(), "run-1", workflows.VerbPause, workflows.Message{})
	require.Error(t, err)
	none(t, o, "run-1")
	_, err = o.Send(t.Context(), "run-1", workflows.VerbResume, workflows.Message{})
	require.ErrorContains(t, err, "its answer is lost")
	e := given(t, o, "run-1")
	require.Equal(t, "resume", e.By)
	require.Equal(t, allowed, e.Variables, "it may have been taken")
}

func TestRefusedResumePassesNoEnvironment(t *testing.T) {
	o, _ := terminal(t, temporal.NewApplicationError("the budget is spent", "no"))
	refused := (*RefusedError)(nil)
	_, err := o.Send(t.Context(), "run-1", workflows.VerbResume, workflows.Message{})
	require.ErrorAs(t, err, &refused)
	none(t, o, "run-1")
	_, err = environ.Save(o.Settings.StateDir, environ.Environment{RunID: "run-1", By: "start",
		Variables: []string{"PATH=/old"}})
	require.NoError(t, err)
	_, err = o.Send(t.Context(), "run-1", workflows.VerbResume, workflows.Message{})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, []string{"PATH=/old"}, given(t, o, "run-1").Variables)
}

func TestEnvironmentIsNotPassedToOtherHosts(t *testing.T) {
	for name, change := range map[string]func(*Operator, projector.Dir){
		"no environment": func(o *Operator, _ projector.Dir) { o.Environ = nil },
		"a run of another host": func(o *Operator, _ projector.Dir) {
			require.NoError(t, os.RemoveAll(filepath.Join(o.Settings.StateDir, "runs")))
		},
		"a store that every host reaches": func(_ *Operator, d projector.Dir) {
			raw, err := os.ReadFile(d.Path(layout.ClaimFile))
			require.NoError(t, err)
			var claim run.Claim
			require.NoError(t, json.Unmarshal(raw, &claim))
			claim.Store = "s3://bucket"
			raw, err = json.Marshal(claim)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(d.Path(layout.ClaimFile), raw, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, d := terminal(t, serviceerror.NewUnavailable("away"))
			change(&o, d)
			_, err := o.Send(t.Context(), "run-1", workflows.VerbResume, workflows.Message{})
			require.ErrorContains(t, err, "away")
			none(t, o, "run-1")
		})
	}
}

func TestStartPassesItsEnvironment(t *testing.T) {
	var sent workflows.Input
	o, d := terminal(t, nil)
	s, err := store.Open(t.Context(), o.Settings.Store)
	require.NoError(t, err)
	defer s.Close()
	plan, err := s.PutJSON(t.Context(), small)
	require.NoError(t, err)
	in := workflows.Input{
		Target: contract.Target{RunID: "run-1", Dir: d.Root, Store: o.Settings.Store},
		Claim:  run.Claim{RunID: "run-1", TaskQueue: "passbook"}, Start: run.RunStart{Plan: string(plan)},
	}
	const reuse = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
	o.Client = deaf{err: serviceerror.NewWorkflowExecutionAlreadyStarted("it runs", "", "")}
	require.Error(t, o.execute(t.Context(), in, reuse))
	none(t, o, "run-1")

	o.Client = deaf{sent: &sent}
	require.NoError(t, o.execute(t.Context(), in, reuse))
	require.Equal(t, "start", given(t, o, "run-1").By)
	require.Equal(t, allowed, given(t, o, "run-1").Variables)
	raw, err := json.Marshal(sent)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "/new/bin", "nothing of it leaves the host")

	in.Reopen = &workflows.Reopen{Epoch: 2}
	require.NoError(t, o.execute(t.Context(), in, reuse))
	require.Equal(t, "resume", given(t, o, "run-1").By)
}

func TestSweepEnvironments(t *testing.T) {
	o, _ := terminal(t, nil)
	const start = `{"seq":1,"ts":"2026-01-02T03:04:05.000Z","kind":"run.start","phase":null,` +
		`"payload":{"pipeline":"small","run_id":"x"}}`
	const end = `{"seq":2,"ts":"2026-01-02T03:04:06.000Z","kind":"run.end","phase":null,"payload":{"status":"done"}}`
	ended := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	journaled(t, o, "closed", start, end)
	journaled(t, o, "reopened", start, end)
	away := filepath.Join(t.TempDir(), "disk", "run")
	require.NoError(t, Index(o.Settings.StateDir, "away", away))
	require.NoError(t, os.RemoveAll(journaled(t, o, "removed", start).Root))
	past := ended.Add(-time.Hour)
	for id, at := range map[string]time.Time{
		"run-1": past, "closed": past, "reopened": ended.Add(time.Hour), "away": past, "removed": past, "unknown": past,
		"expired": past,
	} {
		_, err := environ.Save(o.Settings.StateDir, environ.Environment{RunID: id, At: at})
		require.NoError(t, err)
	}
	require.NoError(t, environ.Expire(o.Settings.StateDir, "expired", past))
	copies := map[string]string{}
	for _, id := range []string{"run-1", "closed", "removed", "unknown", "expired"} {
		copies[id] = filepath.Join(o.Settings.Scratch(), id+"_g0.001.1.-.1", "1", "environ.json")
		require.NoError(t, os.MkdirAll(filepath.Dir(copies[id]), 0o700))
		require.NoError(t, os.WriteFile(copies[id], []byte("[]"), 0o600))
	}
	require.NoError(t, SweepEnvironments(o.Settings))
	for id, file := range copies {
		_, err := os.Stat(file)
		require.Equal(t, id == "run-1", err == nil, "the copy of a run that is %s", id)
	}
	left, err := environ.Runs(o.Settings.StateDir)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"run-1", "reopened", "away"}, left)
	require.NoError(t, SweepEnvironments(config.Settings{StateDir: filepath.Join(t.TempDir(), "none")}))
}

package activities

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/redact"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// theRun is the id of the workflow in Temporal's test environment.
const theRun = "default-test-workflow-id"

// abroad is a harness whose agent is not in the worker's PATH, and that hides the values of *_KEY.
func abroad(t *testing.T, play string) *harness {
	t.Helper()
	h := newHarness(t, play)
	require.NoError(t, os.Mkdir(filepath.Join(h.dir, "bin"), 0o700))
	require.NoError(t, os.Symlink(h.agent, filepath.Join(h.dir, "bin", "the-agent")))
	h.runAgent("the-agent")
	h.acts = h.hiding()
	return h
}

// hiding is a worker that knows no secret yet.
func (h *harness) hiding() *Activities {
	h.t.Helper()
	a := h.worker()
	r := must(redact.New(redact.Options{Names: []string{"*_KEY"}}))(h.t)
	a.cfg.Redact, a.cfg.StateDir = r.Text, filepath.Join(h.dir, "state")
	a.cfg.LearnSecrets = func(environ []string) { r.Learn(environ) }
	return a
}

// handOver is a start from a terminal that finds the agent, and has a key.
func (h *harness) handOver(variables ...string) {
	h.t.Helper()
	variables = append(variables, "PATH="+filepath.Join(h.dir, "bin"), playing+"="+os.Getenv(playing), folder+"="+h.dir)
	must(environ.Save(filepath.Join(h.dir, "state"), environ.Environment{
		RunID: theRun, By: "start", At: time.Now(), Variables: variables,
	}))(h.t)
}

// asRegistered executes RunPass as a worker does.
func (h *harness) asRegistered() (res contract.PassResult, err error) {
	e := env(context.Background())
	e.RegisterActivityWithOptions(redactingInterceptor(h.acts, h.acts.RunPass), activity.RegisterOptions{
		Name: contract.RunPass,
	})
	got, err := e.ExecuteActivity(contract.RunPass, h.in)
	if err == nil {
		err = got.Get(&res)
	}
	return res, err
}

func TestCallUsesRunEnvironment(t *testing.T) {
	h := abroad(t, "spill")
	h.builder()
	res := must(h.asRegistered())(t)
	require.Equal(t, run.CategorySpawnFailed, res.Outcome, "the worker does not find it")

	h.in.Call = "run-1/g0.001.1.-.2"
	h.handOver("ANTHROPIC_API_KEY=" + sesame)
	res = must(h.asRegistered())(t)
	require.Equal(t, run.CategoryOK, res.Outcome, res.Message)
	require.Contains(t, h.text(res.Reply.Digest), "[redacted:env-ANTHROPIC_API_KEY]")
	require.Equal(t, []string{h.text(res.Artifact.Digest)}, h.leaks(), "the artifact is the user's data")
	h.noScratch()
}

// TestUnreadableEnvironmentIsRetried: internal/environ has what makes it unreadable.
func TestUnreadableEnvironmentIsRetried(t *testing.T) {
	h := abroad(t, "answer")
	h.handOver()
	file := filepath.Join(h.dir, "state", "environ", theRun+".json")
	write(file, "{")
	_, err := h.asRegistered()
	require.ErrorContains(t, err, file)
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.False(t, app.NonRetryable())
	h.noScratch()
}

func TestUnsafeEnvironmentIsIgnored(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"not private": func(file string) error { return os.Chmod(file, 0o644) }, "none": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			h := abroad(t, "answer")
			h.handOver()
			require.NoError(t, spoil(filepath.Join(h.dir, "state", "environ", theRun+".json")))
			res := must(h.asRegistered())(t)
			require.Equal(t, run.CategorySpawnFailed, res.Outcome, "that of the worker counts")
			require.True(t, h.acts.warned[theRun])
		})
	}
}

func TestSecretsOfDeadDeliveryAreRedacted(t *testing.T) {
	h := abroad(t, "answer")
	h.leave(gone(t), gone(t), envelopeOf("It is open-sesame.")+"\n")
	h.json(h.deliveryDir(), supervisor.EnvironFile,
		[]string{"ANTHROPIC_API_KEY=" + sesame})
	h.handOver("ANTHROPIC_API_KEY=another-secret")
	require.True(t, must(h.asRegistered())(t).Reused)
	require.Empty(t, h.leaks())
}

func TestLearnAllSecrets(t *testing.T) {
	h := abroad(t, "answer")
	h.handOver("ANTHROPIC_API_KEY=" + sesame)
	require.Equal(t, sesame, h.acts.cfg.Redact(sesame))
	require.NoError(t, h.acts.LearnAllSecrets())
	require.Equal(t, "[redacted:env-ANTHROPIC_API_KEY]", h.acts.cfg.Redact(sesame))
}

func TestInputsNameTheirRun(t *testing.T) {
	require.Equal(t, "run-7", runIDOf(context.Background(),
		contract.NotifyInput{Target: contract.Target{RunID: "run-7"}}))
	require.Empty(t, runIDOf(context.Background(), contract.PassInput{}))
}

func TestNotifyUsesRunEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "said")
	t.Setenv("MAY_SEE", "the worker's")
	ctx := environ.WithVariables(context.Background(), []string{"MAY_SEE=the run's", "PATH=" + os.Getenv("PATH")})
	to := pipeline.Notify{Run: []string{"sh", "-c", `echo "$MAY_SEE" >"$0"`, file}, Env: []string{"MAY_SEE"}}
	a := newActivities(t, Config{Scratch: t.TempDir(), Supervisor: []string{filepath.Join(programs, supervisor.Program)},
		Sandbox: config.Sandbox{Mode: sandbox.None},
		Getenv:  func(string) string { return "the worker's" }})
	require.NoError(t, a.notifyCommand(ctx, to, contract.NotifyInput{}, "", nil))
	require.Equal(t, "the run's\n", read(t, file))

	require.Equal(t, "the run's", must(a.lookupVariable(ctx, "MAY_SEE", ""))(t))
	_, err := a.lookupVariable(ctx, "OTHER", "")
	require.EqualError(t, err, "OTHER is not set in the terminal that started the run, or resumed it last")
}

func TestClosedRunEnvironmentIsRemoved(t *testing.T) {
	for name, row := range map[string]struct {
		on    []string // events that the run notifies of
		stays bool
	}{
		"no messages":     {nil, false},
		"none of its end": {[]string{pipeline.OnQuestion}, false},
		"one of its end":  {[]string{pipeline.OnEnd}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := abroad(t, "answer")
			h.handOver()
			stored := must(h.s.PutJSON(t.Context(), pipeline.Plan{Version: pipeline.PlanVersion,
				Notify: []pipeline.Notify{{On: row.on, GiveUp: time.Hour}}}))(t)
			h.plan = string(stored)
			in := h.startsAs(filepath.Join(h.dir, "run"))
			in.RunID, in.Lines[0] = theRun, strings.ReplaceAll(in.Lines[0], "run-1", theRun)
			project := func() {
				t.Helper()
				must(h.acts.project(t.Context(), in))(t)
			}
			file := filepath.Join(h.dir, "state", "environ", theRun+".json")
			left := filepath.Join(h.dir, "scratch", calls.FolderName(theRun+"/g0.001.1.-.1"), "2")
			others := filepath.Join(h.dir, "scratch", calls.FolderName("another/g0.001.1.-.1"), "1")
			folders(left, others) // of workers that were killed
			for _, dir := range []string{left, others} {
				h.json(dir, supervisor.EnvironFile, []string{"ANTHROPIC_API_KEY=" + sesame})
			}
			project()
			require.FileExists(t, file)
			require.FileExists(t, filepath.Join(left, supervisor.EnvironFile))
			in.First, in.Prev = 2, in.Prev.Over(in.Lines)
			in.Lines = []string{h.line(2, run.KindRunEnd, run.RunEnd{Status: run.Done})}
			project()
			require.NoFileExists(t, filepath.Join(left, supervisor.EnvironFile))
			require.FileExists(t, filepath.Join(others, supervisor.EnvironFile))
			if !row.stays {
				require.NoFileExists(t, file)
				return
			}
			e := must(environ.Load(filepath.Join(h.dir, "state"), theRun))(t)
			require.WithinDuration(t, time.Now().Add(time.Hour), *e.Expires, time.Minute)
		})
	}
}

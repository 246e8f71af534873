package activities

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/redact"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// theRun is the id of the workflow in Temporal's test environment.
const theRun = "default-test-workflow-id"

// abroad is a harness whose agent is not in the worker's PATH, and that hides the values of *_KEY.
func abroad(t *testing.T, play string) *harness {
	t.Helper()
	h := newHarness(t, play)
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(h.dir, "bin"), 0o700))
	require.NoError(t, os.Symlink(self, filepath.Join(h.dir, "bin", "the-agent")))
	h.lay("the-agent")
	h.acts = h.hiding()
	return h
}

// hiding is a worker that knows no secret yet.
func (h *harness) hiding() *Activities {
	h.t.Helper()
	a := h.worker()
	r, err := redact.New(redact.Options{Names: []string{"*_KEY"}})
	require.NoError(h.t, err)
	a.cfg.Redact, a.cfg.StateDir = r.Text, filepath.Join(h.dir, "state")
	a.cfg.LearnSecrets = func(environ []string) { r.Learn(environ) }
	return a
}

// handOver is a start from a terminal that finds the agent, and has a key.
func (h *harness) handOver(variables ...string) {
	h.t.Helper()
	variables = append(variables, "PATH="+filepath.Join(h.dir, "bin"), playing+"="+os.Getenv(playing), folder+"="+h.dir)
	_, err := environ.Save(filepath.Join(h.dir, "state"), environ.Environment{
		RunID: theRun, By: "start", At: time.Now(), Variables: variables,
	})
	require.NoError(h.t, err)
}

// asRegistered executes RunPass as a worker does.
func (h *harness) asRegistered(acts *Activities) contract.PassResult {
	h.t.Helper()
	e := env(context.Background())
	e.RegisterActivityWithOptions(redactingInterceptor(acts, acts.RunPass), activity.RegisterOptions{
		Name: contract.RunPass,
	})
	got, err := e.ExecuteActivity(contract.RunPass, h.in)
	require.NoError(h.t, err)
	var res contract.PassResult
	require.NoError(h.t, got.Get(&res))
	return res
}

func TestCallUsesRunEnvironment(t *testing.T) {
	h := abroad(t, "spill")
	h.builder()
	res := h.asRegistered(h.acts)
	require.Equal(t, run.CategorySpawnFailed, res.Outcome, "the worker does not find it")
	require.Contains(t, res.Message, "resume the run from a terminal that finds it")

	h.in.Call = "run-1/g0.001.1.-.2"
	h.handOver("ANTHROPIC_API_KEY=" + sesame)
	res = h.asRegistered(h.acts)
	require.Equal(t, run.CategoryOK, res.Outcome, res.Message)
	reply, err := blobs.Get(context.Background(), h.s, res.Reply.Digest)
	require.NoError(t, err)
	require.Contains(t, string(reply), "[redacted:env-ANTHROPIC_API_KEY]")
	page, err := blobs.Get(context.Background(), h.s, res.Artifact.Digest)
	require.NoError(t, err)
	require.Equal(t, []string{string(page)}, h.leaks(), "the artifact is the user's data")
	h.noScratch()
}

func TestUnreadableEnvironmentIsRetried(t *testing.T) {
	for _, row := range []struct {
		name    string
		spoil   func(t *testing.T, file string)
		message string // empty: the worker's environment counts
	}{
		{
			"half a file", func(t *testing.T, file string) {
				require.NoError(t,
					os.WriteFile(file, []byte("{"), 0o600))
			},
			"unexpected end of JSON input",
		},
		{"an I/O error", func(t *testing.T, file string) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, os.Symlink(filepath.Base(file), file))
		}, "too many levels of symbolic links"},
		{"not private", func(t *testing.T, file string) { require.NoError(t, os.Chmod(file, 0o644)) }, ""},
		{"none", func(t *testing.T, file string) { require.NoError(t, os.Remove(file)) }, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := abroad(t, "answer")
			h.handOver()
			file := filepath.Join(h.dir, "state", "environ", theRun+".json")
			row.spoil(t, file)
			e := env(context.Background())
			e.RegisterActivityWithOptions(redactingInterceptor(h.acts, h.acts.RunPass), activity.RegisterOptions{
				Name: contract.RunPass,
			})
			got, err := e.ExecuteActivity(contract.RunPass, h.in)
			if row.message == "" {
				require.NoError(t, err)
				var res contract.PassResult
				require.NoError(t, got.Get(&res))
				require.Equal(t, run.CategorySpawnFailed, res.Outcome)
				require.True(t, h.acts.warned[theRun])
				return
			}
			require.ErrorContains(t, err, row.message)
			require.ErrorContains(t, err, file)
			require.ErrorContains(t, err, "make the file readable")
			app := (*temporal.ApplicationError)(nil)
			require.ErrorAs(t, err, &app)
			require.False(t, app.NonRetryable())
			h.noScratch()
		})
	}
}

func TestSecretsOfDeadDeliveryAreRedacted(t *testing.T) {
	h := abroad(t, "answer")
	h.leave(gone(t), gone(t), envelopeOf("It is open-sesame.")+"\n")
	h.json(filepath.Join(h.dir, "scratch", calls.FolderName(callID(h.in)), "1"), supervisor.EnvironFile,
		[]string{"ANTHROPIC_API_KEY=" + sesame})
	h.handOver("ANTHROPIC_API_KEY=another-secret")
	require.True(t, h.asRegistered(h.acts).Reused)
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
	require.NoError(t, notifyCommand(ctx, to, contract.NotifyInput{}, "", nil))
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "the run's\n", string(raw))

	a := newActivities(t, Config{Getenv: func(string) string { return "the worker's" }})
	got, err := a.lookupVariable(ctx, "MAY_SEE", "")
	require.NoError(t, err)
	require.Equal(t, "the run's", got)
	_, err = a.lookupVariable(ctx, "OTHER", "")
	require.EqualError(t, err, "OTHER is not set in the terminal that started the run, or resumed it last")
}

func TestClosedRunEnvironmentIsRemoved(t *testing.T) {
	for _, row := range []struct {
		name   string
		notify []pipeline.Notify
		stays  bool
	}{
		{"no messages", nil, false},
		{"none of its end", []pipeline.Notify{{On: []string{pipeline.OnQuestion}, GiveUp: time.Hour}}, false},
		{"one of its end", []pipeline.Notify{{On: []string{pipeline.OnEnd}, GiveUp: time.Hour}}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := abroad(t, "answer")
			h.handOver()
			d := projector.At(filepath.Join(h.dir, "run"))
			require.NoError(
				t, d.Take(run.Claim{Version: 1, RunID: theRun, Pipeline: "small",
					CreatedAt: "2026-01-02T03:04:05.000Z"}),
			)
			plan, err := h.s.PutJSON(context.Background(),
				pipeline.Plan{Version: pipeline.PlanVersion, Notify: row.notify})
			require.NoError(t, err)
			project := func(first int64, lines ...string) {
				t.Helper()
				tail, err := d.Tail()
				require.NoError(t, err)
				_, err = h.acts.project(context.Background(), contract.ProjectInput{
					Target: contract.Target{RunID: theRun, Dir: d.Root, Store: h.s.URL()}, Epoch: 1, First: first,
					Prev:  tail.Chain,
					Lines: lines,
				})
				require.NoError(t, err)
			}
			file := filepath.Join(h.dir, "state", "environ", theRun+".json")
			left, others := filepath.Join(h.dir, "scratch", calls.FolderName(theRun+"/g0.001.1.-.1"), "2"),
				filepath.Join(h.dir, "scratch", calls.FolderName("another/g0.001.1.-.1"), "1")
			for _, dir := range []string{left, others} { // of workers that were killed
				require.NoError(t, os.MkdirAll(dir, 0o700))
				h.json(dir, supervisor.EnvironFile, []string{"ANTHROPIC_API_KEY=" + sesame})
			}
			project(
				1,
				`{"seq":1,"ts":"2026-01-02T03:04:05.000Z","kind":"run.start","phase":null,"payload":{"pipeline":"small","run_id":"`+
					theRun+`","plan":"`+string(plan)+`"}}`,
			)
			require.FileExists(t, file)
			require.FileExists(t, filepath.Join(left, supervisor.EnvironFile))
			project(2, `{"seq":2,"ts":"2026-01-02T03:04:06.000Z","kind":"run.end","phase":null,"payload":{"status":"done"}}`)
			require.NoFileExists(t, filepath.Join(left, supervisor.EnvironFile))
			require.FileExists(t, filepath.Join(others, supervisor.EnvironFile))
			if !row.stays {
				require.NoFileExists(t, file)
				return
			}
			e, err := environ.Load(filepath.Join(h.dir, "state"), theRun)
			require.NoError(t, err)
			require.WithinDuration(t, time.Now().Add(time.Hour), *e.Expires, time.Minute)
		})
	}
}

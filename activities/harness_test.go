package activities

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// harness is a worker's activities with a store and a plan whose agent is this test binary.
type harness struct {
	t     *testing.T
	dir   string // shared with the agents
	yaml  string // the definition
	agent string // how it is started there
	acts  *Activities
	s     *store.Store
	plan  string
	in    contract.PassInput

	secret string // hidden as <hidden>; empty: nothing is
}

const definition = `
pipeline: small
agent: {run: [AGENT], reply: claude-json, env: [ACTIVITIES_TEST_PLAYS, ACTIVITIES_TEST_FOLDER]}
artifact: {file: page.html, seed: seed.html}
roles:
  builder: {prompt: builder.md, gives: artifact}
  reader: {prompt: reader.md, gives: report}
  auditor-A: {prompt: auditor.md, gives: report, with: {focus: colours}}
  auditor-B: {prompt: auditor.md, gives: report, with: {focus: words}}
  judge: {prompt: reader.md, gives: report, verdict: {find: 'VERDICT: (good|bad|x+)'}}
always_read:
  - Brief: brief.md
stages:
  - name: build
    steps: [{role: builder}, {role: reader}]
  - name: look
    repeat: {max: 2, until: approved}
    steps:
      - screenshots: {sizes: [800x600], kinds: [full]}
      - together: [auditor-A, auditor-B]
      - role: judge
`

var files = map[string]string{
	"reader.md": "Read it.\n", "brief.md": "Be brief.\n",
	"builder.md": "Build the page: {{description}}\n",
	"auditor.md": "Inspect {{with.focus}}: {{description}}\n\n{{pictures}}\n",
	"seed.html":  "<!DOCTYPE html>\n<html>seed</html>\n",
}

func newHarness(t *testing.T, play string) *harness {
	t.Helper()
	self := must(os.Executable())(t)
	h := &harness{t: t, dir: t.TempDir(), yaml: strings.Replace(definition, "AGENT", self, 1), agent: self}
	t.Setenv(playing, play)
	t.Setenv(folder, h.dir)
	h.s = must(store.Open(context.Background(), "file://"+filepath.Join(h.dir, "store")))(t)
	h.acts = h.worker()
	h.lay()
	t.Cleanup(func() { h.acts.Stop() })
	return h
}

// worker makes the activities of a worker process that is this one.
func (h *harness) worker() *Activities {
	return h.workerAs(must(process.Self())(h.t))
}

// workerAs makes the activities of a worker process of that identity.
func (h *harness) workerAs(id process.Identity) *Activities {
	acts := newActivities(h.t, Config{
		Redact: h.redact, Host: "here", Scratch: filepath.Join(h.dir, "scratch"),
		Supervisor: []string{filepath.Join(programs, supervisor.Program)},
		Sandbox:    config.Sandbox{Write: config.Words{h.dir}},
	})
	acts.worker = id
	return acts
}

func newActivities(t *testing.T, c Config) *Activities {
	t.Helper()
	return must(New(c))(t)
}

// must returns the value of a call that may not fail: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { t.Helper(); require.NoError(t, err); return v }
}

func (h *harness) redact(text string) string {
	if h.secret == "" {
		return text
	}
	return strings.ReplaceAll(text, h.secret, "<hidden>")
}

// lay stores the inputs of a run, and asks for pass 1.
func (h *harness) lay() {
	sources := fstest.MapFS{}
	manifest := rundir.Inputs{Version: 1}
	for name, text := range files {
		sources[name] = &fstest.MapFile{Data: []byte(text)}
		manifest.Files = append(manifest.Files, rundir.InputFile{Path: name, Digest: h.put(text).Digest})
	}
	def, problems := pipeline.Parse("small.yaml", []byte(h.yaml), sources)
	require.Empty(h.t, problems)
	plan := must(h.s.PutJSON(context.Background(), pipeline.Expand(def)))(h.t)
	inputs := must(h.s.PutJSON(context.Background(), manifest))(h.t)
	h.plan = string(plan)
	seed := h.put(files["seed.html"])
	h.in = contract.PassInput{
		Store: h.s.URL(), Call: "run-1/g0.002.1.-.1", Attempt: 1, At: contract.StepRef{
			PlanUse: contract.PlanUse{Plan: h.plan, Inputs: string(inputs)}, Round: 1, Step: 1,
		},
		Prompt: h.put("Do it.\n"), Artifact: &seed, TimeoutMS: time.Minute.Milliseconds(), HeartbeatMS: 10_000,
	}
}

func (h *harness) put(text string) run.Blob {
	return must(blobs.Put(context.Background(), h.s, []byte(text)))(h.t)
}

// builder asks for the pass that writes the artifact.
func (h *harness) builder() { h.in.At.Step, h.in.Call = 0, "run-1/g0.001.1.-.1" }

// env is where one activity is executed; ctx is the worker's, so its cause is what an activity sees.
func env(ctx context.Context) *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	e := suite.NewTestActivityEnvironment()
	e.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
	return e
}

// do executes an activity.
func do[In, Out any](t *testing.T, f func(context.Context, In) (Out, error), in In) (Out, error) {
	t.Helper()
	return doIn(context.Background(), f, in)
}

// doIn executes an activity of a worker with this context.
func doIn[In, Out any](ctx context.Context, f func(context.Context, In) (Out, error), in In) (out Out, err error) {
	e := env(ctx)
	e.RegisterActivity(f)
	got, err := e.ExecuteActivity(f, in)
	if err == nil {
		err = got.Get(&out)
	}
	return out, err
}

// pass executes RunPass.
func (h *harness) pass(ctx context.Context) (contract.PassResult, error) {
	return h.passOf(ctx, h.acts)
}

func (h *harness) passOf(ctx context.Context, acts *Activities) (contract.PassResult, error) {
	return doIn(ctx, acts.RunPass, h.in)
}

// outcome is what a delivery of a pass returned.
type outcome struct {
	contract.PassResult
	err error
}

// begin delivers the pass to a worker.
func (h *harness) begin(ctx context.Context, acts *Activities) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		res, err := h.passOf(ctx, acts)
		done <- outcome{res, err}
	}()
	return done
}

// result executes RunPass, which returns no error.
func (h *harness) result() contract.PassResult { return h.resultOf(h.acts) }

func (h *harness) resultOf(acts *Activities) contract.PassResult {
	h.t.Helper()
	return must(h.passOf(h.t.Context(), acts))(h.t)
}

// accepted executes RunPass, which returns an accepted answer.
func (h *harness) accepted() contract.PassResult { return h.acceptedOf(h.acts) }

func (h *harness) acceptedOf(acts *Activities) contract.PassResult {
	h.t.Helper()
	res := h.resultOf(acts)
	require.Equal(h.t, run.CategoryOK, res.Outcome, res.Message)
	return res
}

// text is a stored text.
func (h *harness) text(digest string) string {
	h.t.Helper()
	return string(must(blobs.Get(h.t.Context(), h.s, digest))(h.t))
}

// deliveryDir is the scratch directory of the first delivery of the call.
func (h *harness) deliveryDir() string { return h.acts.deliveryDir(callID(h.in), 1) }

func (h *harness) ledger() calls.Ledger { return calls.Ledger{Store: h.s, Call: callID(h.in)} }

// claims are those of the call's deliveries.
func (h *harness) claims() []calls.Claim {
	h.t.Helper()
	return must(h.ledger().Claims(h.t.Context()))(h.t)
}

// failed requires an application error of this type.
func failed(t *testing.T, err error, kind string) *temporal.ApplicationError {
	t.Helper()
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, kind, app.Type())
	return app
}

// started is how many agents were started.
func (h *harness) started() int {
	h.t.Helper()
	return len(must(filepath.Glob(filepath.Join(h.dir, "started-*")))(h.t))
}

// awaitStart waits until n agents have started.
func (h *harness) awaitStart(n int) {
	h.t.Helper()
	h.await(func() bool { return h.started() == n })
}

func (h *harness) await(condition func() bool) {
	h.t.Helper()
	require.Eventually(h.t, condition, 20*time.Second, 5*time.Millisecond)
}

func (h *harness) letGo() { require.NoError(h.t, os.WriteFile(filepath.Join(h.dir, "go"), nil, 0o600)) }

// noScratch requires that nothing is left of any delivery.
func (h *harness) noScratch() {
	h.t.Helper()
	left, err := os.ReadDir(filepath.Join(h.dir, "scratch"))
	if err == nil {
		require.Empty(h.t, left)
	}
}

// define replaces a text of the definition.
func (h *harness) define(old, by string) {
	h.t.Helper()
	require.Contains(h.t, h.yaml, old)
	h.yaml = strings.Replace(h.yaml, old, by, 1)
	h.lay()
}

// runAgent lets another program be the agent, with its arguments as in a YAML list.
func (h *harness) runAgent(command string) {
	h.t.Helper()
	h.define("run: ["+h.agent+"]", "run: ["+command+"]")
	h.agent = command
}

// plain is a harness whose agent answers in plain text.
func plain(t *testing.T, play string) *harness {
	t.Helper()
	h := newHarness(t, play)
	h.define(adapter.ClaudeJSON, adapter.Text)
	return h
}

// storeBack ends the outage that an agent has made.
func (h *harness) storeBack() {
	h.t.Helper()
	blobs := filepath.Join(h.dir, "store", "blobs")
	require.NoError(h.t, os.Remove(blobs))
	require.NoError(h.t, os.Rename(filepath.Join(h.dir, "store", "away"), blobs))
}

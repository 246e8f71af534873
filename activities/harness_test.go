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
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/activities/contract"
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
)

// harness is a worker's activities with a store and a plan whose agent is this test binary.
type harness struct {
	t    *testing.T
	dir  string // shared with the agents
	acts *Activities
	s    *store.Store
	plan string
	in   contract.PassInput

	secret string // hidden as <hidden>; empty: nothing is
	reply  string // form of the agent's replies; empty: claude-json
	limits string // of the definition

	external bool // the step of the reader declares an external action
	restart  bool // interrupted calls start anew

	conversation bool // the role reader continues its session
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
    repeat: {max: 2, until: verdict == good}
    steps:
      - screenshots: {sizes: [800x600], kinds: [full]}
      - together: [auditor-A, auditor-B]
      - role: judge
`

var files = map[string]string{
	"reader.md": "Read it.\n", "brief.md": "Be brief.\n",
	"builder.md": "Build the page: {{description}}\n",
	"auditor.md": "Look at {{with.focus}}: {{description}}\n\n{{pictures}}\n",
	"seed.html":  "<!DOCTYPE html>\n<html>seed</html>\n",
}

func newHarness(t *testing.T, play string) *harness {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	h := &harness{t: t, dir: t.TempDir()}
	t.Setenv(playing, play)
	t.Setenv(folder, h.dir)
	h.s, err = store.Open(context.Background(), "file://"+filepath.Join(h.dir, "store"))
	require.NoError(t, err)
	h.acts = h.worker()
	h.lay(self)
	t.Cleanup(func() { h.acts.Stop() })
	return h
}

// worker makes the activities of a worker process that is this one.
func (h *harness) worker() *Activities {
	self, err := process.Self()
	require.NoError(h.t, err)
	return h.workerAs(self)
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

func newActivities(t testing.TB, c Config) *Activities {
	t.Helper()
	acts, err := New(c)
	require.NoError(t, err)
	return acts
}

func (h *harness) redact(text string) string {
	if h.secret == "" {
		return text
	}
	return strings.ReplaceAll(text, h.secret, "<hidden>")
}

// lay stores the inputs of a run, and asks for pass 1.
func (h *harness) lay(program string) {
	sources := fstest.MapFS{}
	manifest := rundir.Inputs{Version: 1}
	for name, text := range files {
		sources[name] = &fstest.MapFile{Data: []byte(text)}
		manifest.Files = append(manifest.Files, rundir.InputFile{Path: name, Digest: h.put(text).Digest})
	}
	def, problems := pipeline.Parse("small.yaml", []byte(h.definition(program)), sources)
	require.Empty(h.t, problems)
	plan, err := h.s.PutJSON(context.Background(), pipeline.Expand(def))
	require.NoError(h.t, err)
	inputs, err := h.s.PutJSON(context.Background(), manifest)
	require.NoError(h.t, err)
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
	b, err := blobs.Put(context.Background(), h.s, []byte(text))
	require.NoError(h.t, err)
	return b
}

// builder asks for the pass that gives the artifact.
func (h *harness) builder() { h.in.At.Step, h.in.Call = 0, "run-1/g0.001.1.-.1" }

// env is where one activity is executed; ctx is the worker's, so its cause is what an activity sees.
func env(ctx context.Context) *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	e := suite.NewTestActivityEnvironment()
	e.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
	return e
}

// pass executes RunPass.
func (h *harness) pass(ctx context.Context) (contract.PassResult, error) {
	return h.passOf(ctx, h.acts)
}

func (h *harness) passOf(ctx context.Context, acts *Activities) (contract.PassResult, error) {
	e := env(ctx)
	e.RegisterActivity(acts.RunPass)
	got, err := e.ExecuteActivity(acts.RunPass, h.in)
	if err != nil {
		return contract.PassResult{}, err
	}
	var res contract.PassResult
	return res, got.Get(&res)
}

func (h *harness) ledger() calls.Ledger { return calls.Ledger{Store: h.s, Call: callID(h.in)} }

// started is how many agents were started.
func (h *harness) started() int {
	h.t.Helper()
	names, err := filepath.Glob(filepath.Join(h.dir, "started-*"))
	require.NoError(h.t, err)
	return len(names)
}

// awaitStart waits until so many agents run.
func (h *harness) awaitStart(n int) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return h.started() == n }, 20*time.Second, 5*time.Millisecond)
}

func (h *harness) letGo() { require.NoError(h.t, os.WriteFile(filepath.Join(h.dir, "go"), nil, 0o600)) }

// noScratch says that nothing is left of any delivery.
func (h *harness) noScratch() {
	h.t.Helper()
	left, err := os.ReadDir(filepath.Join(h.dir, "scratch"))
	if err == nil {
		require.Empty(h.t, left)
	}
}

func (h *harness) definition(agent string) string {
	text := strings.Replace(definition, "AGENT", agent, 1)
	if h.reply != "" {
		text = strings.Replace(text, "claude-json", h.reply, 1)
	}
	if h.external {
		text = strings.Replace(text, "{role: reader}", "{role: reader, effect: external_action}", 1)
	}
	if h.restart {
		text = strings.Replace(text, ", env: [", ", on_interrupt: restart, env: [", 1)
	}
	if h.conversation {
		text = strings.Replace(text, "{prompt: reader.md, gives: report}", "{prompt: reader.md, gives: report, "+
			"session: continue}", 1)
	}
	return text + h.limits
}

// plain is a harness whose agent answers in plain text.
func plain(t *testing.T, play string) *harness {
	t.Helper()
	h := newHarness(t, play)
	h.reply = adapter.Text
	self, err := os.Executable()
	require.NoError(t, err)
	h.lay(self)
	return h
}

// storeBack ends the outage that an agent has made.
func (h *harness) storeBack() {
	h.t.Helper()
	blobs := filepath.Join(h.dir, "store", "blobs")
	require.NoError(h.t, os.Remove(blobs))
	require.NoError(h.t, os.Rename(filepath.Join(h.dir, "store", "away"), blobs))
}

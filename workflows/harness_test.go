package workflows_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

// harness is one execution in Temporal's test environment: the real workflow on a real plan, with a fake directory
// and a fake agent.
type harness struct {
	turns    atomic.Int32 // calls with the events before them
	t        *testing.T
	env      *testsuite.TestWorkflowEnvironment
	plan     *pipeline.Plan
	in       contract.Input
	dir      *fakeDirectory
	agent    *fakeAgent
	shots    *fakeCamera
	trees    *fakeTrees
	received *fakeReceivers
	waits    []time.Duration // timers, in order
	mu       sync.Mutex
	trace    []string // what was asked of the world, in order

	items []string   // of a stage with lanes
	lanes *fakeLanes // their runs

	projects *fakeProjects // of a run across projects

	away []error // what opening the store fails with, before it can be opened

	composing func(contract.ComposeInput)
	prompt    run.Blob // that is composed
	secret    string   // redacted as <hidden> where the workflow hides
	start     time.Time

	server *fakeServer // what the workflow asks of it, if it is observed
}

var startTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// parse makes a plan of a definition whose files are all there.
func parse(t *testing.T, src string) *pipeline.Plan {
	t.Helper()
	folder := fstest.MapFS{
		"a.md": {Data: []byte("a")}, "b.md": {Data: []byte("b")}, "prompt.md": {Data: []byte("Do it.\n")},
		"outputs.md": {Data: []byte("Do {{plan.files}}.\n{{tests.output}}\n")},
		"seed.html": {
			Data: []byte("<!DOCTYPE html>\n"),
		},
	}
	def, problems := pipeline.Parse("small.yaml", []byte(src), folder)
	require.Empty(t, problems)
	return pipeline.Expand(def)
}

// storeURL is the store of all tests: a store has a folder for each first byte of a digest.
var storeURL string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "workflows-test-")
	if err != nil {
		panic(err)
	}
	storeURL = "file://" + dir + "/store"
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// stored puts a value into the store of the tests.
func stored(t *testing.T, v any) string {
	t.Helper()
	s, err := store.Open(context.Background(), storeURL)
	require.NoError(t, err)
	digest, err := s.PutJSON(context.Background(), v)
	require.NoError(t, err)
	return string(digest)
}

func newHarness(t *testing.T, src string) *harness {
	t.Helper()
	plan := parse(t, src)
	w := &harness{
		t: t, plan: plan, dir: &fakeDirectory{}, shots: &fakeCamera{}, received: &fakeReceivers{},
		trees: &fakeTrees{found: contract.DeliverResult{Diff: &run.Blob{Digest: "the diff"}, Files: 1}},
		agent: &fakeAgent{plan: plan, scripts: map[string][]script{}, calls: map[string]int{}, usd: 1},
		in:    input(plan, stored(t, plan)), prompt: run.Blob{Digest: "prompt", Chars: 8},
	}
	w.trees.current = w.dir.current
	w.dir.note, w.agent.note, w.shots.note, w.trees.note = w.note, w.note, w.note, w.note
	w.fresh()
	return w
}

func input(plan *pipeline.Plan, planDigest string) contract.Input {
	start := run.RunStart{
		RunID: "run-1", ThreadID: "run-1", Pipeline: plan.Pipeline, Epoch: 1, Plan: planDigest, TotalPasses: plan.Total,
		Budget:   contract.BudgetOf(plan),
		Artifact: &run.ArtifactRef{File: "page.html", Seed: run.Blob{Digest: "seed"}},
	}
	for i, s := range plan.Stages {
		start.Stages = append(start.Stages, run.StageRef{Name: s.Name, Kind: string(s.Kind), Acts: plan.ActsFrom(i)})
	}
	start.Kind, start.Delivers, start.Judged = plan.Kind, plan.Delivery != nil, plan.JudgedFrom(0)
	start.Waits = run.Waits{
		RemindMS: plan.Questions.Remind.Milliseconds(), ExpiresMS: plan.Questions.Expires.Milliseconds(),
		OnExpiry: plan.Questions.OnExpiry,
	}
	for _, n := range plan.Notify {
		start.Receivers = append(start.Receivers, run.Receiver{
			Name: n.Who(), On: n.On, TimeoutMS: n.Timeout.Milliseconds(), GiveUpMS: n.GiveUp.Milliseconds(),
		})
	}
	if plan.Workspace != nil {
		start.Artifact = nil
		start.Workspace = &run.Workspace{
			Kind: "git", Source: "/source", Base: "base", Branch: "passbook/run-1",
			Tree: run.Blob{Digest: "first tree"},
		}
	}
	q := contract.HostQueues("passbook", "here")
	return contract.Input{
		Target: contract.Target{RunID: "run-1", Dir: "/runs/1", Store: storeURL}, Claim: run.Claim{
			RunID: "run-1", TaskQueue: "passbook", Host: "here",
		},
		Start: start, DirQueue: q.Dir, Calls: "passbook-calls", Options: contract.Options{Turns: true},
	}
}

// planUse names the plan of the start.
func (w *harness) planUse() contract.PlanUse {
	return contract.PlanUse{Plan: w.in.Start.Plan, Inputs: w.in.Start.Inputs}
}

// fresh makes a new execution on the same directory, with the same agent.
func (w *harness) fresh() {
	w.env = workflows.NewTestEnvironment(&observes{server: &w.server})
	if w.start.IsZero() {
		w.start = startTime
	}
	w.env.SetStartTime(w.start)
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "run-1"})
	if w.in.Snapshot != nil && w.in.Reopen == nil {
		w.env.SetContinuedExecutionRunID("the execution before")
	}
	w.env.SetTestTimeout(time.Minute)
	w.env.SetOnTimerScheduledListener(func(_ string, d time.Duration) { w.waits = append(w.waits, d) })
	workflows.Register(withChildren{w.env, w}, w.hidden)
	acts, err := activities.New(activities.Config{})
	require.NoError(w.t, err)
	for name, f := range map[string]any{
		contract.Open: w.dir.Open, contract.Project: w.dir.Project, contract.Rebuild: w.dir.Rebuild,
		contract.ArchiveSegment: w.dir.Seal, contract.Inspect: w.dir.Inspect,
		contract.ReadRound: w.readRound(acts), contract.Evaluate: acts.Evaluate, contract.Amend: w.amend(acts), contract.Compose: w.compose,
		contract.RunPass: w.agent.RunPass, contract.Turn: w.turn,
		contract.TakeScreenshots: w.shots.TakeScreenshots,
		contract.FindCheckpoint:  w.dir.FindCheckpoint, contract.SyncWorkspace: w.trees.Carry,
		contract.Deliver: w.trees.Deliver, contract.Notify: w.received.Notify,
		contract.NextEpoch: w.dir.NextEpoch,
	} {
		w.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	w.registerLanes()
	w.registerProjects()
}

// turn writes the events and makes the call, as a worker does.
func (w *harness) turn(ctx context.Context, in contract.TurnInput) (contract.TurnResult, error) {
	w.turns.Add(1)
	res, err := w.dir.Project(ctx, in.Project)
	if err != nil || res.Outcome != run.ProjectionWritten {
		return contract.TurnResult{Project: contract.ProjectResult{Outcome: res.Outcome}}, nil
	}
	pass, err := w.agent.RunPass(ctx, in.Call)
	return contract.TurnResult{Project: res, Pass: &pass}, err
}

// readRound reads from the store of the test, unless it is away.
func (w *harness) readRound(acts *activities.Activities) any {
	return func(ctx context.Context, in contract.RoundInput) (contract.Round, error) {
		if err := w.storeAway(); err != nil {
			return contract.Round{}, err
		}
		in.Store = storeURL
		return acts.ReadRound(ctx, in)
	}
}

func (w *harness) amend(acts *activities.Activities) any {
	return func(ctx context.Context, in contract.AmendInput) (contract.AmendResult, error) {
		if err := w.storeAway(); err != nil {
			return contract.AmendResult{}, err
		}
		in.Store = storeURL
		return acts.Amend(ctx, in)
	}
}

// storeAway returns the next error of a store that is away.
func (w *harness) storeAway() (err error) {
	if len(w.away) > 0 {
		err, w.away = w.away[0], w.away[1:]
	}
	return err
}

func (w *harness) hidden(text string) string {
	if w.secret == "" {
		return text
	}
	return strings.ReplaceAll(text, w.secret, "<hidden>")
}

func (w *harness) compose(_ context.Context, in contract.ComposeInput) (contract.ComposeResult, error) {
	if w.composing != nil {
		w.composing(in)
	}
	return contract.ComposeResult{Prompt: w.prompt}, nil
}

func (w *harness) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, what)
}

// execute runs the workflow to its end.
func (w *harness) execute() (contract.Result, error) {
	w.t.Helper()
	w.env.ExecuteWorkflow(contract.PipelineWorkflow, w.in)
	require.True(w.t, w.env.IsWorkflowCompleted())
	w.dir.namesPhases(w.t)
	var r contract.Result
	if err := w.env.GetWorkflowError(); err != nil {
		return r, err
	}
	return r, w.env.GetWorkflowResult(&r)
}

// done runs the workflow to its end, which must be a good one.
func (w *harness) done() contract.Result {
	w.t.Helper()
	r, err := w.execute()
	require.NoError(w.t, err)
	require.Equal(w.t, run.Done, r.Status)
	return r
}

// story is the kinds of events on disk, one word each, without what no test of order is about.
func (w *harness) story(kinds ...run.Kind) []string {
	var out []string
	for _, e := range w.dir.events(w.t) {
		for _, k := range kinds {
			if e.Kind == k {
				out = append(out, strings.TrimSpace(string(e.Kind)+" "+about(e)))
			}
		}
	}
	return out
}

// about names the pass or checkpoint of an event.
func about(e run.Event) string {
	var p run.Pass
	e.Decode(&p)
	var c run.CheckpointCreated
	e.Decode(&c)
	if p.Step == "" {
		return c.ID
	}
	return strings.TrimSuffix(p.Step+" "+p.Member, " ")
}

// payloads decodes every event of a kind.
func payloads[T any](w *harness, kind run.Kind) []T {
	w.t.Helper()
	var out []T
	for _, e := range w.dir.events(w.t) {
		if e.Kind == kind {
			var p T
			e.Decode(&p)
			out = append(out, p)
		}
	}
	return out
}

const head = `
pipeline: small
agent: {run: [scripted], reply: claude-json}
limits: {timeout: 10m, attempts: 3, structural: 2, backoff: {first: 5s, factor: 2, max: 2m, jitter: 0.2}}
artifact: {file: page.html, seed: seed.html}
roles:
  builder: {prompt: prompt.md, gives: artifact}
  reader: {prompt: prompt.md, gives: report}
  critic-A: {prompt: prompt.md, gives: report}
  critic-B: {prompt: prompt.md, gives: report}
  critic-C: {prompt: prompt.md, gives: report}
  judge: {prompt: prompt.md, gives: report, score: {name: score, find: 'Score: ([0-4])', take: last, range: [0, 4]}}
`

// twoPasses are two numbered passes.
const twoPasses = head + `
stages:
  - name: build
    checkpoint: cp-built
    steps: [{role: builder}, {role: builder}]
`

// aGroup is three critics at the same time, and a reader of their replies.
const aGroup = head + `
stages:
  - name: look
    steps: [{together: [critic-A, critic-B, critic-C]}, {role: reader, see: last}]
`

// aLoop builds once and polishes until the judge is content.
const aLoop = head + `
stages:
  - name: build
    steps: [{role: builder}]
  - name: polish
    repeat: {max: 3, until: score >= 3}
    checkpoint: cp-{n}
    dir: cycle-{n}
    steps:
      - screenshots: {sizes: [800x600], kinds: [full], attempts: 3, if_failing: continue}
      - together: [critic-A, critic-B]
      - role: judge
      - role: builder
`

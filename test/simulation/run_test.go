package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

// newWorld returns the world of a seed, in an empty folder. It must be called inside a bubble.
func newWorld(seed uint64, root string, p plan, f fault) *world {
	r := rand.New(rand.NewPCG(seed, 2))
	w := &world{seed: seed, plan: p, random: r, count: map[disturbance]int{}, failed: map[string]int{},
		faults: slices.Sorted(maps.Keys(agentFaults)), resetTo: -1,
		answers: rand.New(rand.NewPCG(seed, 1)), root: root, fault: f, calls: newCallLog(),
		settled:  map[string]settled{},
		arrivals: make(chan struct{}, 1), over: make(chan struct{})}
	w.dir, w.store = rundir.At(filepath.Join(root, "run")), "file://"+filepath.Join(root, "store")
	w.machine = &machine{w: w, boot: "boot of " + root}
	return w
}

func (w *world) storeFolder() string { return filepath.Join(w.root, "store") }

// play executes a run to its end, with all its epochs.
func (w *world) play() {
	defer process.Simulate(w.machine.boot, w.machine)()
	for n := range 2 {
		w.workers = append(w.workers, w.start(n))
	}
	in, err := w.input()
	if err != nil {
		w.check(err)
		return
	}
	scheduler := make(chan struct{})
	go func() { defer close(scheduler); w.schedule() }()
	for epochs := 1; ; epochs++ {
		if !w.epoch(in) || epochs == maxEpochs {
			break
		}
		w.epochs++
		if tail, err := w.dir.Tail(); err == nil && tail.Seq == 0 {
			continue // nothing has begun: it is started again
		}
		if in, err = w.reopened(); err != nil {
			w.check(err)
			break
		}
	}
	w.settle()
	close(w.over)
	<-scheduler
	for _, k := range w.workers {
		k.acts.HandOver()
	}
	synctest.Wait()
}

const maxEpochs = 5

// begun is an execution that has begun, and can begin again.
type begun struct {
	in        contract.Input
	epoch     int
	continued bool // from the one before
}

// epoch executes one epoch, and returns whether another one can follow.
func (w *world) epoch(in contract.Input) (again bool) {
	w.first = len(w.begun)
	if tail, err := w.dir.Tail(); err == nil {
		w.began = tail.Seq
	}
	at := begun{in: in, epoch: w.epochs}
	for n := 0; ; n++ {
		w.begun = append(w.begun, at)
		res, err := w.execute(at)
		next := (*workflow.ContinueAsNewError)(nil)
		w.executions++
		switch back := w.resetTo; {
		case err != nil && strings.Contains(err.Error(), termination) && back >= 0:
			at, w.resetTo = w.begun[back], -1
			w.begun, w.first = w.begun[:back], min(w.first, back)
		case errors.As(err, &next):
			at = begun{epoch: at.epoch, continued: true}
			w.check(converter.GetDefaultDataConverter().FromPayloads(next.Input, &at.in))
		case err != nil:
			w.note("the workflow has ended: " + w.name(err.Error()))
			w.running = true
			w.check(w.closed(err))
			return !w.stopped
		default:
			w.note("the run is " + string(res.Status))
			w.running = false
			return res.Status == run.Failed || res.Status == run.Cancelled || res.Status == run.Halted
		}
		if n > maxExecutions {
			w.stop(errors.New("the epoch does not end"))
		}
	}
}

const maxExecutions = 200

// closed wants a workflow that ended with an error to have closed the run, unless it was terminated, has not opened the
// directory or journaled nothing, or the environment has given up to reach the store, which a server never does.
func (w *world) closed(cause error) error {
	text := cause.Error()
	for _, excused := range []string{termination, "open " + w.dir.Root, contract.ErrNoStore} {
		if strings.Contains(text, excused) {
			return nil
		}
	}
	now, err := w.dir.Now()
	if err == nil && !now.State.Status.Closed() && now.Tail.Seq != w.began {
		err = fmt.Errorf("the workflow has ended and its run is %s: %w", now.State.Status, cause)
	}
	return err
}

// execute is one execution of the workflow.
func (w *world) execute(b begun) (res contract.Result, err error) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	start := time.Now()
	if w.env != nil && w.env.Now().After(start) {
		start = w.env.Now() // waits of the workflow take no time of the bubble
	}
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(start)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: b.in.Target.RunID})
	env.SetTestTimeout(10_000 * time.Hour)
	at := &executions{epoch: b.epoch}
	env.SetWorkerOptions(sdk.Options{DeadlockDetectionTimeout: time.Hour,
		Interceptors: []interceptor.WorkerInterceptor{at}})
	if b.continued {
		env.SetContinuedExecutionRunID("the execution before")
	}
	w.mu.Lock()
	w.env = env
	w.mu.Unlock()
	workflows.Register(env, nil)
	w.register()
	env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, "", mock.Anything, mock.Anything).Return(nil)
	w.attend(env)
	env.ExecuteWorkflow(contract.PipelineWorkflow, b.in)
	w.left = w.leaves()
	clear(w.retries)
	if err := env.GetWorkflowError(); err != nil {
		return res, err
	}
	return res, env.GetWorkflowResult(&res)
}

// input stores the inputs of a new run, as its start does.
func (w *world) input() (in contract.Input, err error) {
	ctx := context.Background()
	s, err := store.Open(ctx, w.store)
	if err != nil {
		return in, err
	}
	folder, manifest := fstest.MapFS{}, rundir.Inputs{Version: 1}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		text := sources[name]
		folder[name] = &fstest.MapFile{Data: []byte(text)}
		b, err := blobs.Put(ctx, s, []byte(text))
		if err != nil {
			return in, err
		}
		manifest.Files = append(manifest.Files, rundir.InputFile{Path: name, Digest: b.Digest, Size: b.Size})
	}
	p, source, err := w.stored(ctx, s, w.plan.definition(), folder)
	if err != nil {
		return in, err
	}
	longer, other, err := w.stored(ctx, s, strings.Replace(w.plan.definition(), "timeout: 1m", "timeout: 2m", 1), folder)
	seed, serr := blobs.Put(ctx, s, []byte(sources["seed.html"]))
	stored, perr := s.PutJSON(ctx, p)
	inputs, ierr := s.PutJSON(ctx, manifest)
	policy, oerr := s.PutJSON(ctx, map[string]int{"version": 1})
	plan2, lerr := s.PutJSON(ctx, longer)
	if err := errors.Join(err, serr, perr, ierr, oerr, lerr); err != nil {
		return in, err
	}
	w.amended = run.PlanRef{Plan: string(plan2), Definition: other.Digest, Inputs: string(inputs),
		Policy: string(policy), ConfigHash: longer.ConfigHash}
	claim := run.Claim{
		Version: run.ClaimVersion, RunID: "run-1", ThreadID: "run-1", CreatedAt: run.Time(time.Now()),
		Pipeline: p.Pipeline, ConfigHash: p.ConfigHash, Store: w.store, Host: hostName, TaskQueue: "passbook",
	}
	ev := run.RunStart{
		Task: "Do it.", RunKind: "pipeline", Pipeline: p.Pipeline, Wording: run.Wording(p.Wording), RunID: claim.RunID,
		ThreadID: claim.ThreadID, Epoch: 1, CreatedAt: claim.CreatedAt, Definition: source.Digest, Plan: string(stored),
		Inputs: string(inputs), Policy: string(policy), ConfigHash: p.ConfigHash, Budget: contract.BudgetOf(p),
		Artifact: &run.ArtifactRef{File: "page.html", Seed: seed}, Snapshots: p.Snapshots, Kind: p.Kind,
		Host: hostName,
	}
	ev = ev.Under(ev.PlanRef(), contract.TermsOf(p, 0))
	if err := w.dir.Take(claim); err != nil {
		return in, err
	}
	if w.plan.tree {
		if ev.Artifact, ev.Workspace, err = nil, new(run.Workspace), nil; err == nil {
			*ev.Workspace, err = w.workspace(ctx, s, p)
		}
	}
	return w.target(claim, ev), err
}

// stored is the plan of a definition, and its source in the store.
func (w *world) stored(ctx context.Context, s *store.Store, text string, folder fstest.MapFS) (*pipeline.Plan, run.Blob,
	error) {
	def, problems := pipeline.Parse("simulated.yaml", []byte(text), folder)
	if len(problems) > 0 {
		return nil, run.Blob{}, fmt.Errorf("%v in\n%s", problems, text)
	}
	source, err := blobs.Put(ctx, s, []byte(text))
	return pipeline.Expand(def), source, err
}

// workspace stores the source of the working tree.
func (w *world) workspace(ctx context.Context, s *store.Store, p *pipeline.Plan) (run.Workspace, error) {
	out := run.Workspace{Kind: "dir", Source: filepath.Join(w.root, "src")}
	w.leave(behaviour{files: sourceFiles}, out.Source)
	saved, err := tree.Save(ctx, s, out.Source, workspace.FirstRules(p), nil)
	if err != nil {
		return out, err
	}
	out.Tree = workspace.Blob(saved)
	return out, nil
}

func (w *world) target(claim run.Claim, start run.RunStart) contract.Input {
	q := contract.HostQueues(claim.TaskQueue, hostName)
	return contract.Input{
		Target: contract.Target{RunID: claim.RunID, Dir: w.dir.Root, Store: w.store}, Claim: claim, Start: start,
		DirQueue: q.Dir, Calls: q.HostCalls,
		Options: contract.Options{ContinueAfter: w.plan.continueAfter, Turns: w.plan.turns},
	}
}

// reopened returns the input of the next epoch, which follows from the directory alone.
func (w *world) reopened() (in contract.Input, err error) {
	ctx := context.Background()
	s, err := store.Open(ctx, w.store)
	if err != nil {
		return in, err
	}
	claim, err := w.dir.Claim()
	if err != nil {
		return in, err
	}
	c, err := rundir.Continue(ctx, w.dir, blobs.Of(s), nil)
	if err != nil {
		return in, err
	}
	start := c.Start
	if ref := c.State.PlanInForce(start); ref == w.amended {
		var p pipeline.Plan
		if err := s.GetJSON(ctx, store.Digest(ref.Plan), &p); err != nil {
			return in, err
		}
		start = start.Under(ref, contract.TermsOf(&p, 0))
	}
	in = w.target(claim, start)
	in.Snapshot = &contract.Snapshot{State: c.State, Tail: c.Tail}
	if last, err := rundir.SegmentEnd(ctx, blobs.Of(s), c.Meta.SegmentHead); err == nil {
		in.Snapshot.Head, in.Snapshot.Archived = c.Meta.SegmentHead, last
	}
	in.Reopen = &contract.Reopen{Epoch: c.Epoch, From: c.State.Status, By: "ada", Host: hostName,
		Force: c.State.Status == run.Halted, Unended: c.State.Status.Settled() && !c.Ended}
	if !c.State.Status.Closed() {
		in.Reopen.From, in.Reopen.Interruption = run.Interrupted, "its workflow has failed"
	}
	if q, ok := c.State.Asks(); ok {
		in.Reopen.Decision = &contract.Message{Action: q.Actions[0], ID: q.ID, By: "ada", Feedback: "more"}
	}
	return in, nil
}

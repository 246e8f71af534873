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
	"testing/fstest"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

// newWorld returns the world of a seed, in an empty folder. It must be called inside a bubble.
func newWorld(seed uint64, root string, p plan, f fault) *world {
	r := rand.New(rand.NewPCG(seed, 2))
	w := &world{plan: p, random: r, answers: rand.New(rand.NewPCG(seed, 1)), root: root, fault: f, calls: newCallLog(),
		settled:  map[string]string{},
		arrivals: make(chan struct{}, 1), over: make(chan struct{})}
	w.dir, w.store = projector.At(filepath.Join(root, "run")), "file://"+filepath.Join(root, "store")
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

// epoch executes one epoch, and returns whether another one can follow.
func (w *world) epoch(in workflows.Input) (again bool) {
	for n := 0; ; n++ {
		res, err := w.execute(in, n > 0)
		next := (*workflow.ContinueAsNewError)(nil)
		w.executions++
		switch {
		case errors.As(err, &next):
			in = workflows.Input{}
			w.check(converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
		case err != nil:
			w.note("the workflow has ended: " + w.name(err.Error()))
			return true
		default:
			w.note("the run is " + string(res.Status))
			return res.Status == run.Failed || res.Status == run.Cancelled
		}
	}
}

// execute is one execution of the workflow.
func (w *world) execute(in workflows.Input, continued bool) (res workflows.Result, err error) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	start := time.Now()
	if w.env != nil && w.env.Now().After(start) {
		start = w.env.Now() // waits of the workflow take no time of the bubble
	}
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(start)
	env.SetTestTimeout(10_000 * time.Hour)
	if continued {
		env.SetContinuedExecutionRunID("the execution before")
	}
	w.mu.Lock()
	w.env = env
	w.mu.Unlock()
	workflows.Register(env, nil, nil)
	w.register()
	w.attend(env)
	env.ExecuteWorkflow(workflows.Name, in)
	if err := env.GetWorkflowError(); err != nil {
		return res, err
	}
	return res, env.GetWorkflowResult(&res)
}

// input stores the inputs of a new run, as its start does.
func (w *world) input() (in workflows.Input, err error) {
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
	def, problems := pipeline.Parse("simulated.yaml", []byte(w.plan.definition), folder)
	if len(problems) > 0 {
		return in, fmt.Errorf("%v in\n%s", problems, w.plan.definition)
	}
	p := pipeline.Expand(def)
	source, err := blobs.Put(ctx, s, []byte(w.plan.definition))
	seed, serr := blobs.Put(ctx, s, []byte(sources["seed.html"]))
	stored, perr := s.PutJSON(ctx, p)
	inputs, ierr := s.PutJSON(ctx, manifest)
	policy, oerr := s.PutJSON(ctx, map[string]int{"version": 1})
	if err := errors.Join(err, serr, perr, ierr, oerr); err != nil {
		return in, err
	}
	claim := run.Claim{
		Version: run.ClaimVersion, RunID: "run-1", ThreadID: "run-1", CreatedAt: run.Time(time.Now()),
		Pipeline: p.Pipeline, ConfigHash: p.ConfigHash, Store: w.store, Host: host, TaskQueue: "passbook",
	}
	ev := run.RunStart{
		Task: "Do it.", RunKind: "pipeline", Pipeline: p.Pipeline, Wording: run.Wording(p.Wording), RunID: claim.RunID,
		ThreadID: claim.ThreadID, Epoch: 1, CreatedAt: claim.CreatedAt, Definition: source.Digest, Plan: string(stored),
		Inputs: string(inputs), Policy: string(policy), ConfigHash: p.ConfigHash, Budget: contract.BudgetOf(p),
		Artifact: &run.ArtifactRef{File: "page.html", Seed: seed}, Snapshots: p.Snapshots, Kind: p.Kind,
		Host: host,
	}
	ev = ev.Under(ev.PlanRef(), contract.TermsOf(p, 0))
	return w.target(claim, ev), errors.Join(w.dir.Take(claim), s.Close())
}

func (w *world) target(claim run.Claim, start run.RunStart) workflows.Input {
	q := contract.HostQueues(claim.TaskQueue, host)
	return workflows.Input{
		Target: contract.Target{RunID: claim.RunID, Dir: w.dir.Root, Store: w.store}, Claim: claim, Start: start,
		DirQueue: q.Dir, Calls: q.HostCalls, Options: workflows.Options{ContinueAfter: w.plan.continueAfter},
	}
}

// reopened returns the input of the next epoch, which follows from the directory alone.
func (w *world) reopened() (in workflows.Input, err error) {
	ctx := context.Background()
	s, err := store.Open(ctx, w.store)
	if err != nil {
		return in, err
	}
	defer s.Close()
	claim, err := w.dir.Claim()
	if err != nil {
		return in, err
	}
	c, err := fsck.Continue(ctx, w.dir.Dir, blobs.Of(s), nil)
	if err != nil {
		return in, err
	}
	in = w.target(claim, c.Start)
	in.Snapshot = &workflows.Snapshot{State: c.State, Tail: c.Tail}
	if last, err := journal.SegmentEnd(ctx, blobs.Of(s), c.Meta.SegmentHead); err == nil {
		in.Snapshot.Head, in.Snapshot.Archived = c.Meta.SegmentHead, last
	}
	in.Reopen = &workflows.Reopen{Epoch: c.State.Epoch + 1, From: c.State.Status, By: "ada", Host: host}
	if !c.State.Status.Closed() {
		in.Reopen.From, in.Reopen.Interruption = run.Interrupted, "its workflow has failed"
	}
	if q, ok := c.State.Asks(); ok {
		in.Reopen.Decision = &workflows.Message{Action: q.Actions[0], ID: q.ID, By: "ada", Feedback: "more"}
	}
	return in, nil
}

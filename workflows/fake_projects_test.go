package workflows_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

const twoProjects = `
pipeline: shop
projects:
  library: {source: library, pipeline: a.md}
  service: {source: service, pipeline: a.md, needs: [library]}
stages:
  - name: contract
    steps: [{run: make contract, if_failing: ask}]
`

// fakeProjects are the records of the runs of projects. A child works for an hour, then leaves the record of leaves.
type fakeProjects struct {
	mu       sync.Mutex
	records  map[string]contract.ChildFound
	leaves   map[string]contract.ChildFound
	started  []string
	usd      map[string]float64 // budget of each child
	reads    map[string]int
	joined   []contract.ProjectTree
	delivers []string // alias, and whether it is prepared or committed
	onRead   func(alias string, n int)
	silent   bool // the library's run does not report its end
}

// worksFor is how long a child works.
const worksFor = time.Hour

// acrossProjects is a harness with a library and a service that needs it. Both runs succeed.
func acrossProjects(t *testing.T, src string) *harness {
	t.Helper()
	w := newHarness(t, src)
	w.projects = &fakeProjects{records: map[string]contract.ChildFound{}, leaves: map[string]contract.ChildFound{},
		reads: map[string]int{}, usd: map[string]float64{}}
	w.in.Start.Artifact, w.in.Start.RunKind = nil, run.RunKindCross
	for _, p := range w.plan.Projects {
		w.projects.leaves[p.Alias] = doneProject(p.Alias)
		in := contract.Input{
			Target: contract.Target{RunID: p.Alias + "-run", Dir: "/runs/1/" + p.Alias, Store: storeURL},
			Start: run.RunStart{RunID: p.Alias + "-run", Delivers: true, Task: "Change it",
				MemberOf:  &run.Membership{RunID: "run-1", Alias: p.Alias},
				Workspace: &run.Workspace{Kind: "git", Source: "/" + p.Alias}},
		}
		w.in.Start.Projects = append(w.in.Start.Projects, run.ProjectRef{Alias: p.Alias, RunID: in.Target.RunID,
			Needs: p.Needs})
		w.in.Projects = append(w.in.Projects, contract.ChildInput{Alias: p.Alias, Queue: "passbook", Input: &in})
	}
	w.fresh()
	return w
}

func doneProject(alias string) contract.ChildFound {
	return contract.ChildFound{Found: run.Present, Status: run.Done, Closed: true, USD: 1,
		Tree: &run.Blob{Digest: "tree of " + alias}, Commit: "commit of " + alias}
}

func endedProject(status run.Status, reason string) contract.ChildFound {
	return contract.ChildFound{Found: run.Present, Status: status, Reason: reason, Closed: true, USD: 1}
}

// withChildren registers the workflows, and the fake one for the runs of projects.
type withChildren struct {
	worker.WorkflowRegistry
	w *harness
}

func (r withChildren) RegisterWorkflowWithOptions(f any, o workflow.RegisterOptions) {
	if whole, ok := f.(func(workflow.Context, contract.Input) (contract.Result, error)); ok {
		f = func(ctx workflow.Context, in contract.Input) (contract.Result, error) {
			if r.w.projects != nil && in.Start.MemberOf != nil {
				return r.w.child(ctx, in)
			}
			if r.w.lanes != nil && in.Start.Lane != nil {
				return r.w.lane(ctx, in)
			}
			return whole(ctx, in)
		}
	}
	r.WorkflowRegistry.RegisterWorkflowWithOptions(f, o)
}

func (w *harness) registerProjects() {
	if w.projects == nil {
		return
	}
	for name, f := range map[string]any{
		contract.ReadChild: w.projects.read, contract.JoinTrees: w.projects.join,
		contract.DeliverProject: w.projects.deliver,
	} {
		w.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// child is the run of a project. It reports what it leaves, and ends when its record is closed.
func (w *harness) child(ctx workflow.Context, in contract.Input) (contract.Result, error) {
	alias, f := in.Start.MemberOf.Alias, w.projects
	f.mu.Lock()
	f.started, f.usd[alias] = append(f.started, alias), in.Start.Budget.CapUSD
	f.records[alias] = contract.ChildFound{Found: run.Present, Status: run.Running}
	leaves := f.leaves[alias]
	silent := f.silent && alias == "library"
	f.mu.Unlock()
	if silent {
		return contract.Result{}, workflow.Sleep(ctx, worksFor)
	}
	err := workflow.Sleep(ctx, worksFor)
	if err == nil {
		w.becomes(alias, leaves)
	}
	for err == nil && !f.record(alias).Closed {
		err = workflow.Sleep(ctx, 10*time.Minute)
	}
	if err != nil {
		f.set(alias, endedProject(run.Cancelled, ""))
	}
	return contract.Result{}, err
}

// becomes changes the record of a project, whose run reports it, and continues after that.
func (w *harness) becomes(alias string, found contract.ChildFound) {
	w.projects.set(alias, found)
	w.env.SignalWorkflow(contract.ChildChanged, contract.ChildMessage{RunID: alias + "-run"})
}

func (f *fakeProjects) set(alias string, found contract.ChildFound) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records[alias] = found
}

func (f *fakeProjects) record(alias string) contract.ChildFound {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.records[alias]
}

func (f *fakeProjects) read(_ context.Context, in contract.ReadChildInput) (contract.ChildFound, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads[in.Path]++
	if f.onRead != nil {
		f.onRead(in.Path, f.reads[in.Path])
	}
	return f.records[in.Path], nil
}

func (f *fakeProjects) join(_ context.Context, in contract.JoinTreesInput) (run.Blob, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.joined = in.Trees
	return run.Blob{Digest: "all trees"}, nil
}

func (f *fakeProjects) deliver(_ context.Context, in contract.DeliverProjectInput) (contract.DeliverResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	res := contract.DeliverResult{Diff: &run.Blob{Digest: "diff of " + in.Alias}, Files: 1}
	if in.Prepare {
		f.delivers = append(f.delivers, in.Alias+" prepared")
		return res, nil
	}
	f.delivers = append(f.delivers, in.Alias+" delivered")
	res.Delivered, res.To, res.Location = true, "branch", "result"
	return res, nil
}

// projectStory lists the events of projects and of questions about them: one line for each event, in order.
// Projects of the same batch are in the order of their names.
func (w *harness) projectStory() (story []string) {
	w.t.Helper()
	for _, e := range w.dir.events(w.t) {
		var end run.ProjectEnd
		var skip run.ProjectSkip
		var asked run.QuestionRequested
		var decided run.QuestionDecided
		switch e.Kind {
		case run.KindProjectStarted, run.KindProjectDelivered:
			e.Decode(&end)
			story = append(story, string(e.Kind)+" "+end.Alias)
		case run.KindProjectEnded:
			e.Decode(&end)
			story = append(story, strings.TrimSpace(string(e.Kind)+" "+end.Alias+" "+string(end.Outcome)+" "+end.Reason))
		case run.KindProjectSkipped:
			e.Decode(&skip)
			story = append(story, string(e.Kind)+" "+skip.Alias+" needs "+strings.Join(skip.Needs, " "))
		case run.KindGateRequested, run.KindHandoffRequested:
			e.Decode(&asked)
			story = append(story, string(e.Kind)+" "+asked.Trigger)
		case run.KindGateDecided, run.KindHandoffDecided:
			e.Decode(&decided)
			story = append(story, strings.TrimSpace(string(e.Kind)+" "+decided.Action+" "+decided.DecidedBy))
		}
	}
	return story
}

// accepts accepts the work of all projects, and leaves other questions open.
func (w *harness) accepts() {
	w.answering(func(_ int, q run.Question) {
		if q.Trigger == run.TriggerAcceptance {
			w.signal("decide", message{"action": "continue"})
		}
	})
}

// at calls f at that time of the run.
func (w *harness) at(after time.Duration, f func()) { w.env.RegisterDelayedCallback(f, after) }

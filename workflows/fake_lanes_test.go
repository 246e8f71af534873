package workflows_test

import (
	"context"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// fakeLanes are the runs of lanes. A lane works for an hour, or as long as its item asks, and leaves a tree with the name
// of its item, or what its script contains.
type fakeLanes struct {
	mu        sync.Mutex
	works     map[string]time.Duration         // by item
	leaves    map[string][]contract.ChildFound // by item, one after another; a record that is not closed waits for a message
	records   map[string]contract.ChildFound   // by run id
	places    map[int]run.LanePlace            // by number of the item, of its last run
	inputs    []contract.Input                 // of all that started
	told      []string                         // messages to lanes: item and name
	reads     map[string]int                   // by run id
	atOnce    int                              // the most that worked at the same time
	running   int
	conflicts map[string]int // of the lanes of these items, so often
	onto      []string       // the tree before each merge, and the item
	merging   map[string]func()
	reading   map[string]func() // before the record of a run is read
	broken    bool              // no merge can be made
	usd       float64
}

func newLanes() *fakeLanes {
	return &fakeLanes{works: map[string]time.Duration{}, leaves: map[string][]contract.ChildFound{},
		records: map[string]contract.ChildFound{}, places: map[int]run.LanePlace{}, reads: map[string]int{},
		conflicts: map[string]int{}, merging: map[string]func(){}, usd: 1}
}

// cost is what one call of a lane costs.
func (f *fakeLanes) cost() *run.ChildCost {
	t := run.Totals{Calls: 1, USD: f.usd, Known: run.CostExact, Tokens: run.Tokens{Input: 10}}
	return &run.ChildCost{Spent: t, ByRole: []run.Named{{Name: "worker", Totals: t}}, Calls: 1, Tokens: 10,
		Means: []run.Mean{{Role: "worker", Calls: 1, USD: f.usd}}}
}

func (f *fakeLanes) set(id string, in contract.Input, found contract.ChildFound) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found.Found, found.Budget = run.Present, in.Start.Budget
	if found.Cost == nil {
		found.Cost = f.cost()
	}
	f.records[id] = found
}

func (f *fakeLanes) next(key string) (found contract.ChildFound) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if all := f.leaves[key]; len(all) > 0 {
		f.leaves[key] = all[1:]
		return all[0]
	}
	return contract.ChildFound{Status: run.Done, Closed: true, Tree: &run.Blob{Digest: "tree of " + key}}
}

// count counts the lanes that work.
func (f *fakeLanes) count(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running += n
	f.atOnce = max(f.atOnce, f.running)
}

// lane is the run of a lane. Its run has written that it starts.
func (w *harness) lane(ctx workflow.Context, in contract.Input) (r contract.Result, err error) {
	f, l, id := w.lanes, in.Start.Lane, in.Target.RunID
	require.True(w.t, slices.ContainsFunc(w.dir.state(w.t).Lanes.Active, func(a run.Lane) bool { return a.Key+a.Suffix == l.Key+l.Suffix }),
		"%s is not in the directory", id)
	f.mu.Lock()
	f.inputs, f.places[l.Index] = append(f.inputs, in), l.LanePlace
	f.mu.Unlock()
	f.set(id, in, contract.ChildFound{Status: run.Running, Cost: &run.ChildCost{}})
	messages := 0
	for _, verb := range []string{"pause", "resume", "decide", "budget"} {
		ch := workflow.GetSignalChannel(ctx, verb)
		workflow.Go(ctx, func(ctx workflow.Context) {
			for {
				var m contract.Message
				ch.Receive(ctx, &m)
				if verb == "budget" {
					in.Start.Budget.CapUSD = m.USD
				} else {
					messages++
				}
				f.mu.Lock()
				f.told = append(f.told, l.Name+" "+verb+" "+m.Action)
				f.mu.Unlock()
			}
		})
	}
	ended := false
	defer func() {
		if !ended { // cancelled
			f.set(id, in, contract.ChildFound{Status: run.Cancelled, Closed: true})
		}
	}()
	for {
		works := f.works[l.Key]
		if works == 0 {
			works = time.Hour
		}
		f.count(1)
		err = workflow.Sleep(ctx, works)
		f.count(-1)
		if err != nil {
			return r, err
		}
		found := f.next(l.Key)
		f.set(id, in, found)
		if ended = found.Closed; ended {
			return r, nil
		}
		w.env.SignalWorkflow(contract.ChildChanged, contract.ChildMessage{RunID: id})
		before := messages
		if err = workflow.Await(ctx, func() bool { return messages > before }); err != nil {
			return r, err
		}
		f.set(id, in, contract.ChildFound{Status: run.Running, Cost: &run.ChildCost{}})
		w.env.SignalWorkflow(contract.ChildChanged, contract.ChildMessage{RunID: id})
	}
}

func (f *fakeLanes) read(_ context.Context, in contract.ReadChildInput) (contract.ChildFound, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads[in.Child]++
	if before := f.reading[in.Child]; before != nil {
		delete(f.reading, in.Child)
		before()
	}
	found, there := f.records[in.Child]
	if !there {
		return contract.ChildFound{Closed: true}, nil
	}
	return found, nil
}

// merge merges trees by their names: "first tree" and lanes a and b become "first tree+a+b".
func (w *harness) merge(_ context.Context, in contract.MergeInput) (contract.MergeResult, error) {
	f := w.lanes
	f.mu.Lock()
	defer f.mu.Unlock()
	item := w.items[in.Index]
	f.onto = append(f.onto, in.Tree.Tree.Digest+" "+item+in.Suffix)
	if before := f.merging[item]; before != nil {
		delete(f.merging, item)
		before()
	}
	res := contract.MergeResult{Lane: f.places[in.Index]}
	if f.broken {
		return res, errGone
	}
	if f.conflicts[item] > 0 {
		f.conflicts[item]--
		res.Conflicts, res.Count = []string{"common.txt"}, 1
		return res, nil
	}
	tree := run.Blob{Digest: in.Tree.Tree.Digest + "+" + item}
	res.Changes = &run.WorkspaceUpdated{Tree: tree, Commit: "commit of " + tree.Digest, Changed: 1}
	return res, nil
}

// expand lists the items of the test.
func (w *harness) expand(_ context.Context, in contract.ExpandInput) (contract.ExpandResult, error) {
	res := contract.ExpandResult{List: "list", Count: len(w.items)}
	for _, name := range w.items[min(in.From, len(w.items)):] {
		res.Items = append(res.Items, contract.LaneItem{Key: name, Name: name})
	}
	return res, nil
}

func (w *harness) registerLanes() {
	w.env.RegisterActivityWithOptions(w.expand, activity.RegisterOptions{Name: contract.ExpandLanes})
	if w.lanes != nil {
		w.env.RegisterActivityWithOptions(w.merge, activity.RegisterOptions{Name: contract.MergeLane})
		w.env.RegisterActivityWithOptions(w.lanes.read, activity.RegisterOptions{Name: contract.ReadChild})
	}
}

// started lists the ends of the run ids of the lanes that started, in order.
func (f *fakeLanes) started() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, in := range f.inputs {
		all = append(all, path.Base(in.Target.Dir))
	}
	return all
}

func (f *fakeLanes) sortedTold() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(slices.Values(f.told))
}

package serve

import (
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/work"
)

// kind is what a queue of runs on a shared store holds.
type kind int

const (
	workflowTasks kind = iota
	anyCalls           // that every host can make: screenshots that install their browser
	screenshots
	programCalls
)

// queue is a queue of runs on a shared store.
type queue struct {
	name string
	kind kind
}

// found is what a worker found on its host.
type found struct {
	stores   map[string]error  // by URL
	programs map[string]string // by name, with their paths
	browser  string            // its path; empty: none
	missing  error             // why there is no browser
}

// serves lists the queues that a host can serve, each once: those of all runs of a reachable store first, then those of programs in the order of the
// needs. What is over the most is left out.
func serves(base string, needs []need, has found, most int) (all, leftOut []queue) {
	add := func(name string, k kind) {
		if q := (queue{name, k}); !slices.Contains(all, q) {
			all = append(all, q)
		}
	}
	needs = slices.DeleteFunc(slices.Clone(needs), func(n need) bool {
		err, checked := has.stores[n.store]
		return !checked || err != nil
	})
	for _, n := range needs {
		name := work.StoreQueue(base, n.store)
		add(name, workflowTasks)
		add(work.CallsOf(name), anyCalls)
		if has.browser != "" {
			add(work.BrowserQueue(work.CallsOf(name)), screenshots)
		}
	}
	for _, n := range needs {
		for _, program := range n.programs {
			if has.program(program) {
				add(work.ProgramQueue(work.CallsOf(work.StoreQueue(base, n.store)), program), programCalls)
			}
		}
	}
	cut := min(len(all), most)
	return all[:cut], all[cut:]
}

// program says whether calls of a program can be made. One that is built in is everywhere; one that is named relative to the tree of a run is a matter
// of that tree.
func (f found) program(name string) bool {
	return name == pipeline.Scripted || strings.Contains(name, "/") && !strings.HasPrefix(name, "/") || f.programs[name] != ""
}

// need is what runs on a store need of a host.
type need struct {
	store    string
	programs []string
}

// merged puts needs together by store. Stores and programs stay in the order in which they are met.
func merged(lists ...[]need) []need {
	var out []need
	for _, n := range slices.Concat(lists...) {
		i := slices.IndexFunc(out, func(o need) bool { return o.store == n.store })
		if i < 0 {
			i, out = len(out), append(out, need{store: n.store})
		}
		for _, p := range n.programs {
			if !slices.Contains(out[i].programs, p) {
				out[i].programs = append(out[i].programs, p)
			}
		}
	}
	return out
}

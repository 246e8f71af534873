package host

import (
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/workflows/contract"
)

// kind is the kind of tasks in a queue of runs on a shared store.
type kind int

const (
	workflowTasks kind = iota
	anyCalls           // calls that every host can make: screenshots that install their browser
	screenshots
	programCalls
)

// queue is a queue of runs on a shared store.
type queue struct {
	name string
	kind kind
}

// found lists what a worker found on its host.
type found struct {
	stores   map[string]error  // by URL
	programs map[string]string // paths by name
	browser  string            // its path; empty: none
	missing  error             // the cause if there is no browser
}

// serves lists the queues that a host can serve, each once: first those of all runs on reachable stores, then those of
// programs in the order of the needs. Queues over the limit are left out.
func serves(base string, needs []need, has found, limit int) (all, leftOut []queue) {
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
		name := contract.StoreQueue(base, n.store)
		add(name, workflowTasks)
		add(contract.CallQueuePrefix(name), anyCalls)
		if has.browser != "" {
			add(contract.BrowserQueue(contract.CallQueuePrefix(name)), screenshots)
		}
	}
	for _, n := range needs {
		for _, program := range n.programs {
			if has.program(program) {
				calls := contract.CallQueuePrefix(contract.StoreQueue(base, n.store))
				add(contract.ProgramQueue(calls, program), programCalls)
			}
		}
	}
	cut := min(len(all), limit)
	return all[:cut], all[cut:]
}

// program reports whether this host can call a program. The scripted agent is built in. A relative path names a program
// in the tree of a run, which every host has.
func (f found) program(name string) bool {
	inTree := strings.Contains(name, "/") && !strings.HasPrefix(name, "/")
	return name == pipeline.Scripted || inTree || f.programs[name] != ""
}

// need is what runs on a store need of a host.
type need struct {
	store    string
	programs []string
}

// merged combines needs by store. Stores and programs stay in the order of their first occurrence.
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

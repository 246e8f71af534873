package host

import (
	"context"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/workflows/contract"
)

// capabilities checks what this machine's worker lacks, as it reported: its environment may differ from that of this
// terminal.
func (e *examiner) capabilities() {
	c, err := ReadCapabilities(e.Settings.StateDir)
	if err != nil {
		e.add(Unchecked, "worker", "capabilities", "", "%v", err)
		return
	}
	if !c.Process.Alive() {
		return
	}
	for _, s := range c.Stores {
		if s.Missing != "" {
			e.add(Problem, "worker", "capabilities",
				"start the worker with the store's credentials; it checks every "+e.Settings.Recheck.String(),
				"the worker (pid %d) does not reach the store %s, and takes no work of its runs: %s", c.Process.PID,
				s.Name, s.Missing)
		}
	}
	if len(c.LeftOut) > 0 {
		e.add(Warning, "worker", "capabilities", "start another worker",
			"the worker (pid %d) polls no more than %d queues, and leaves out %s",
			c.Process.PID, len(c.Queues), strings.Join(c.LeftOut, ", "))
	}
}

// shared lists what runs on shared stores need and no worker has: the open runs, and the next one with these
// settings.
func (e *examiner) shared(ctx context.Context, o operations.Operator) {
	needs, err := operations.OpenNeeds(ctx, o.Client, o.Converter, e.Settings.TaskQueue)
	if err != nil {
		e.add(Unchecked, "worker", "shared stores", "", "list the open runs: %v", err)
		return
	}
	needs = slices.DeleteFunc(needs,
		func(n operations.Needs) bool { return !strings.HasPrefix(n.Queue, e.Settings.TaskQueue+"-") })
	wanted := !o.Embedded || AnyOpen(ctx, o.Client, o.Namespace) // otherwise a worker starts with the next run
	if wanted && !operations.HostBound(e.Settings.Store) {
		needs = append(needs, operations.Needs{
			Queue: contract.StoreQueue(e.Settings.TaskQueue,
				e.Settings.Store), Store: config.Masked(e.Settings.Store), Programs: programs(e.Agents),
		})
	}
	seen := map[string]bool{}
	var lacks []string
	for _, n := range needs {
		for _, l := range n.Lacks() {
			if l.Optional || seen[l.Queue] || seen[l.Words] {
				continue
			}
			seen[l.Queue], seen[l.Words] = true, true
			found, err := e.awaitPollers(ctx, o, l.Queue, l.Kind)
			if err != nil {
				e.add(Unchecked, "worker", "shared stores", "", "%v", err)
				return
			}
			if len(found) == 0 {
				lacks = append(lacks, l.Words)
			}
		}
	}
	switch {
	case len(lacks) > 0:
		e.add(Problem, "worker", "shared stores",
			"install it on a host with a worker, or start a worker where it is: "+e.starts(o),
			"%s; what needs it waits", strings.Join(lacks, "; "))
	case len(needs) > 0:
		e.ok("worker", "shared stores", "workers reach the stores and have the programs that runs on them need")
	}
}

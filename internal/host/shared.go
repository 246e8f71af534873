package host

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/browser"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/workflows/contract"
)

// storeTimeout bounds how long a store takes to answer a check.
const storeTimeout = 5 * time.Second

// host polls the queues of runs on shared stores that this host can serve, and checks at an interval which these are.
// It learns which programs runs need from the plans that its activities read, and from the memos of open runs.
type sharedQueues struct {
	o    WorkerConfig
	self process.Identity
	open func(queue) (polled, error)
	wake chan struct{}

	mu    sync.Mutex
	met   []need   // from plans
	names []string // of the polled queues

	runs      []need // of all open runs, from the last list
	polled    map[queue]polled
	announced Capabilities
}

// polled is one queue that is polled. Without a gate it is stopped at once when it is no longer served.
type polled struct {
	worker.Worker
	gate *slotGate
}

func newShared(o WorkerConfig, self process.Identity) *sharedQueues {
	return &sharedQueues{o: o, self: self, wake: make(chan struct{}, 1), polled: map[queue]polled{}}
}

// needs records what a run needs whose plan was read on this host.
func (h *sharedQueues) needs(storeURL string, programs []string) {
	if operations.HostBound(storeURL) {
		return
	}
	h.mu.Lock()
	now := merged(h.met, []need{{storeURL, programs}})
	changed := !reflect.DeepEqual(now, h.met)
	h.met = now
	h.mu.Unlock()
	if changed {
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}
}

// keep checks until ctx ends, at the interval and when a plan needs something new.
func (h *sharedQueues) keep(ctx context.Context) {
	tick := time.NewTicker(cmp.Or(h.o.Settings.Recheck, 10*time.Second))
	defer tick.Stop()
	for {
		h.check(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-h.wake:
		}
	}
}

// check finds what the host has, and polls the queues that it can serve.
func (h *sharedQueues) check(ctx context.Context) {
	needs := h.wanted(ctx)
	has := h.find(ctx, needs)
	if ctx.Err() != nil {
		return
	}
	all, leftOut := serves(h.o.Settings.TaskQueue, needs, has, h.o.bounds().Queues)
	h.retire(all)
	for _, q := range all {
		if p, ok := h.polled[q]; ok {
			if p.gate != nil {
				p.gate.set(true)
			}
			continue
		}
		p, err := h.open(q)
		if err != nil {
			slog.Warn("a queue is not polled; the next check retries", "queue", q.name, "error", err)
			continue
		}
		h.polled[q] = p
	}
	h.announce(has, leftOut)
}

// wanted lists what this worker's settings, all open runs and the plans that it read need, in this order.
func (h *sharedQueues) wanted(ctx context.Context) []need {
	h.mu.Lock()
	met := h.met
	h.mu.Unlock()
	var own []need
	if url := h.o.Settings.Store; !operations.HostBound(url) {
		own = []need{{url, append([]string{pipeline.Scripted, pipeline.Shell}, operations.WellKnown...)}}
	}
	open, err := operations.OpenNeeds(ctx, h.o.Client, h.o.Converter, h.o.Settings.TaskQueue)
	if err != nil {
		if ctx.Err() == nil {
			slog.Warn("open runs cannot be listed; the next check retries", "error", err)
		}
		return merged(own, h.runs, met)
	}
	h.runs = nil
	for _, n := range open {
		for _, url := range []string{n.Store, h.o.Settings.Store} { // the URL in the memo may lack a secret
			if !operations.HostBound(url) && contract.StoreQueue(h.o.Settings.TaskQueue, url) == n.Queue {
				h.runs = append(h.runs, need{url, n.Programs})
				break
			}
		}
	}
	return merged(own, h.runs, met)
}

// find searches the host for what is needed.
func (h *sharedQueues) find(ctx context.Context, needs []need) found {
	has := found{stores: map[string]error{}, programs: map[string]string{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, n := range needs {
		for _, name := range n.programs {
			if path, err := environ.LookPath(name, os.Environ()); err == nil {
				has.programs[name] = path
			}
		}
		all.Go(func() {
			err := reachStore(ctx, n.store)
			mu.Lock()
			has.stores[n.store] = err
			mu.Unlock()
		})
	}
	if len(needs) > 0 {
		has.browser, has.missing = browser.Find(h.o.Settings.Browser)
	}
	all.Wait()
	return has
}

// reachStore checks a store.
func reachStore(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	s, err := store.Open(ctx, url)
	if err != nil {
		return err
	}
	return s.Reach(ctx)
}

// retire stops polling queues that the host no longer serves or no run needs. A queue of calls stays until none of its
// calls runs.
func (h *sharedQueues) retire(all []queue) {
	for q, p := range h.polled {
		if slices.Contains(all, q) {
			continue
		}
		if p.gate != nil {
			if p.gate.set(false); !p.gate.empty() {
				continue
			}
		}
		p.Stop()
		delete(h.polled, q)
	}
}

// announce records what was found for the doctor, if it has changed.
func (h *sharedQueues) announce(has found, leftOut []queue) {
	now := Capabilities{Process: h.self, At: h.announced.At}
	for _, name := range slices.Sorted(maps.Keys(has.programs)) {
		now.Programs = append(now.Programs, Capability{Name: name, Path: has.programs[name]})
	}
	for _, url := range slices.Sorted(maps.Keys(has.stores)) {
		c := Capability{Name: config.Masked(url)}
		if err := has.stores[url]; err != nil {
			c.Missing = h.o.Redact.Text(err.Error())
		}
		now.Stores = append(now.Stores, c)
	}
	now.Browser.Path = has.browser
	if has.missing != nil {
		now.Browser.Missing = has.missing.Error()
	}
	for q := range h.polled {
		now.Queues = append(now.Queues, q.name)
	}
	slices.Sort(now.Queues)
	h.mu.Lock()
	h.names = now.Queues
	h.mu.Unlock()
	for _, q := range leftOut {
		now.LeftOut = append(now.LeftOut, q.name)
	}
	if reflect.DeepEqual(now, h.announced) {
		return
	}
	h.warn(now)
	now.At = time.Now().UTC().Truncate(time.Millisecond)
	if err := AnnounceCapabilities(h.o.Settings.StateDir, now); err != nil {
		slog.Warn("the capabilities of this host are not recorded", "error", err)
		return
	}
	h.announced = now
}

// warn logs each store that became unreachable or reachable, and queues over the limit.
func (h *sharedQueues) warn(now Capabilities) {
	for _, s := range now.Stores {
		before := slices.ContainsFunc(h.announced.Stores, func(o Capability) bool {
			return o.Name == s.Name && o.Missing != ""
		})
		switch {
		case s.Missing != "" && !before:
			slog.Warn("this host does not reach the store; its runs wait", "store", s.Name, "error", s.Missing)
		case s.Missing == "" && before:
			slog.Warn("this host reaches the store again", "store", s.Name)
		}
	}
	if len(now.LeftOut) > len(h.announced.LeftOut) {
		slog.Warn("runs need more queues than one worker polls", "not polled", now.LeftOut)
	}
}

// queues returns the names of the polled queues.
func (h *sharedQueues) queues() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.names)
}

// workers returns all workers that poll.
func (h *sharedQueues) workers() []worker.Worker {
	var out []worker.Worker
	for _, p := range h.polled {
		out = append(out, p)
	}
	return out
}

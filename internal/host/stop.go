package host

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/activities"
)

// A worker that leaves its calls to the next one stops within both times, even if the server does not answer.
const (
	stopFlows = 500 * time.Millisecond
	handOver  = 1500 * time.Millisecond
)

// stop stops all workers at the same time, and returns when their activities have ended or timed out.
func stop(group []worker.Worker) {
	var all sync.WaitGroup
	for _, w := range group {
		all.Go(w.Stop)
	}
	all.Wait()
}

func makesCalls(w worker.Worker) bool {
	p, ok := w.(polled)
	return ok && p.gate != nil
}

// finish stops polling and leaves the running calls to the next worker. With the setting drain it waits for them first,
// and then ends those that still run.
func (o WorkerConfig) finish(group []worker.Worker, acts *activities.Activities) {
	flows, stopped := make(chan struct{}), make(chan struct{})
	go func() { defer close(flows); stop(slices.DeleteFunc(slices.Clone(group), makesCalls)) }()
	go func() { defer close(stopped); stop(group) }()
	if o.Settings.Drain > 0 {
		o.drain(acts, stopped)
	}
	// After the handover, a workflow task would schedule the next delivery, and an open poll of this worker would receive
	// and lose it.
	select {
	case <-flows:
	case <-time.After(stopFlows):
	}
	acts.HandOver()
	select { // a server that does not answer must not delay the stop
	case <-stopped:
	case <-time.After(handOver):
	}
}

// drain waits until no call runs, the setting drain has passed, or Abort is closed. It ends the calls that still run.
func (o WorkerConfig) drain(acts *activities.Activities, stopped <-chan struct{}) {
	timeout := time.After(o.Settings.Drain)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	reported := ""
	for {
		calls := acts.Running()
		if len(calls) == 0 {
			return
		}
		if now := strings.Join(calls, ", "); now != reported {
			reported = now
			o.progress("Waiting up to %s for %s. A second signal ends them at once.", o.Settings.Drain, count(calls))
		}
		select {
		case <-tick.C:
		case <-stopped:
			return
		case <-o.Abort:
			o.progress("Ending %s.", count(calls))
			acts.CancelCalls("a second signal stopped the worker")
			return
		case <-timeout:
			o.progress("Timed out after %s; ending %s.", o.Settings.Drain, count(calls))
			acts.CancelCalls("the worker stops")
			return
		}
	}
}

func count(calls []string) string {
	noun := "calls"
	if len(calls) == 1 {
		noun = "call"
	}
	return fmt.Sprintf("%d %s (%s)", len(calls), noun, strings.Join(calls, ", "))
}

func (o WorkerConfig) progress(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

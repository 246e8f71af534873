package serve

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/activities"
)

// handOver is how long a worker that leaves its calls to the next one may take to stop.
const handOver = 1500 * time.Millisecond

// stop ends the polling of all workers at the same time, and returns when their activities have ended or their time is up.
func stop(group []worker.Worker) {
	var all sync.WaitGroup
	for _, w := range group {
		all.Go(w.Stop)
	}
	all.Wait()
}

// finish stops polling and hands the running calls over. Where they would end with this process it waits for them first, and ends what is left then.
func (o Options) finish(group []worker.Worker, acts *activities.Activities) {
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop(group) }()
	if o.Settings.Drain > 0 {
		o.drain(acts, stopped)
	}
	acts.HandOver()
	select { // a server that does not answer must not hold the end up
	case <-stopped:
	case <-time.After(handOver):
	}
}

// drain waits until no call runs, for as long as the settings say or until it is told to end them. What still runs then is ended.
func (o Options) drain(acts *activities.Activities, stopped <-chan struct{}) {
	late := time.After(o.Settings.Drain)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	said := ""
	for {
		calls := acts.Running()
		if len(calls) == 0 {
			return
		}
		if now := strings.Join(calls, ", "); now != said {
			said = now
			o.say("Waiting up to %s for %s. A second signal ends what runs at once.", o.Settings.Drain, count(calls))
		}
		select {
		case <-tick.C:
		case <-stopped:
			return
		case <-o.Now:
			o.say("Ending %s.", count(calls))
			acts.EndCalls("the worker was told to stop at once")
			return
		case <-late:
			o.say("%s have passed; ending %s.", o.Settings.Drain, count(calls))
			acts.EndCalls("the worker stops")
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

func (o Options) say(format string, args ...any) {
	if o.Say != nil {
		o.Say(fmt.Sprintf(format, args...))
	}
}

package simulation_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	realRuns   = flag.Int("real.runs", 0, "runs of TestRealServer")
	realSeed   = flag.Uint64("real.seed", 1, "seed of its first run")
	realRecord = flag.String("record-histories", "", "store the histories of its runs in this folder")
	realAtOnce = flag.Int("real.parallel", 2, "hosts with two workers each")
)

// once wants no call to be paid for again once an agent has answered it, also if its question has changed: nothing but
// a message changes it.
func (r *realRun) once() error {
	if r.moved || r.plan.asks || r.plan.agentFaults || r.plan.budget != "{usd: 9}" {
		return nil
	}
	answered := map[string]int{}
	for call, n := range r.calls.usable {
		at := digests.ReplaceAllString(filepath.Dir(call), "#")
		if answered[at] += n; answered[at] > 1 {
			return fmt.Errorf("invariant 4: call %s was answered %d times", at, answered[at])
		}
	}
	return nil
}

// TestRealServer executes random runs of the same pipelines with the real server and workers and agents as processes.
// Two workers, which are killed, execute each workflow task from the begin of its history.
func TestRealServer(t *testing.T) {
	if *realRuns == 0 {
		t.Skip("it needs the server: -real.runs 60")
	}
	s := newSite(t)
	var hosts sync.WaitGroup
	seeds := make(chan uint64)
	all, replayed, mu, began := newCounts(), 0, sync.Mutex{}, time.Now()
	for n := range *realAtOnce {
		c, err := s.newCrew(fmt.Sprint("host-", n))
		require.NoError(t, err)
		defer c.kill(0)
		defer c.kill(1)
		hosts.Go(func() {
			for seed := range seeds {
				r, err := c.judgeReal(t.Context(), seed)
				mu.Lock()
				if *verbose {
					t.Logf("seed %d: %d epochs, %v", seed, r.epochs, r.count)
				}
				all.add(r.outcome().counts)
				replayed += r.replayed
				mu.Unlock()
				if err != nil {
					t.Errorf("seed %d: %v\nsee a run like it: go test ./test/simulation -run '^TestRealServer$' -real.runs 1 "+
						"-real.seed %d -v\n%s\n%s", seed, err, seed, strings.Join(r.log, "\n"), r.outcome().journal)
				}
			}
		})
	}
	for n := range uint64(*realRuns) {
		if t.Failed() && !*keepGoing {
			break
		}
		seeds <- *realSeed + n
	}
	close(seeds)
	hosts.Wait()
	t.Logf("%d runs in %s: %d histories replayed, %+v", *realRuns, time.Since(began).Round(time.Second), replayed, all)
}

// judgeReal executes a run, and undisturbed if it must have the same result then.
func (c *crew) judgeReal(ctx context.Context, seed uint64) (*realRun, error) {
	p := draw(seed)
	r, err := c.playReal(ctx, seed, p, fmt.Sprintf("disturbed-%d", seed))
	calm, ok := p.undisturbed()
	if err != nil || !ok {
		return r, err
	}
	want, err := c.playReal(ctx, seed, calm, fmt.Sprintf("unharmed--%d", seed))
	if err != nil {
		return want, fmt.Errorf("undisturbed: %w", err)
	}
	if err := r.outcome().sameResult(want.outcome()); err != nil {
		return r, err
	}
	return r, os.RemoveAll(r.root)
}

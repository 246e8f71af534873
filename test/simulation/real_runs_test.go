package simulation_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/passbook-run/passbook/test/histories"
)

var (
	realRuns   = flag.Int("real.runs", 0, "runs of TestRealServer")
	realSeed   = flag.Uint64("real.seed", 1, "seed of its first run")
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

// replays executes the workflow code once more on the histories of all executions of the run.
func (r *realRun) replays() error {
	return r.persist(func() error {
		page, err := r.op.Client.ListWorkflow(r.ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowId = %q", r.id)})
		if err != nil {
			return err
		}
		for _, e := range page.Executions {
			history, err := histories.Fetch(r.ctx, r.op.Client, r.id, e.Execution.RunId)
			if err != nil {
				return err
			}
			if len(history.Events) < 3 { // no worker has executed anything
				continue
			}
			if err := histories.Replay(history, histories.Options{}); err != nil {
				return fmt.Errorf("replay execution %s: %w", e.Execution.RunId, err)
			}
		}
		r.replayed = len(page.Executions)
		return nil
	})
}

// killParent kills the supervisor of an agent, which ends with it.
func killParent(agent int) error {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", agent))
	if err != nil {
		return err
	}
	var parent int
	after := string(raw[strings.LastIndexByte(string(raw), ')')+1:])
	var state string
	if _, err := fmt.Sscan(after, &state, &parent); err != nil || parent < 2 {
		return fmt.Errorf("parent of %d: %d, %w", agent, parent, err)
	}
	return syscall.Kill(parent, syscall.SIGKILL)
}

// TestRealServer executes random runs of the same pipelines with the real server and workers and agents as processes.
// Two workers, which are killed, execute each workflow task from the begin of its history; the server is killed, too.
func TestRealServer(t *testing.T) {
	if *realRuns == 0 {
		t.Skip("it needs the server: -real.runs 60")
	}
	s := newSite(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var hosts, killer sync.WaitGroup
	killer.Go(func() {
		if err := s.killServer(ctx, rand.New(rand.NewPCG(*realSeed, 4))); err != nil {
			t.Error(err)
		}
	})
	var sum realSum
	next, mu, began := *realSeed, sync.Mutex{}, time.Now()
	sum.counts = counts{disturbances: map[disturbance]int{}, faults: map[string]int{}}
	for n := range *realAtOnce {
		hosts.Go(func() {
			c, err := s.newCrew(fmt.Sprint("host-", n))
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { require.NoError(t, c.dismiss()) }()
			for {
				mu.Lock()
				seed := next
				next++
				over := seed >= *realSeed+uint64(*realRuns) || t.Failed() && !*keepGoing
				mu.Unlock()
				if over {
					return
				}
				begin := time.Now()
				r, err := c.judgeReal(ctx, seed)
				mu.Lock()
				if *verbose {
					t.Logf("seed %d: %s, %d epochs, %v", seed, time.Since(begin).Round(time.Millisecond), r.epochs, r.count)
				}
				sum.add(r)
				mu.Unlock()
				if err != nil {
					t.Errorf("seed %d: %v\nsee a run like it: go test ./test/simulation -run '^TestRealServer$' -real.runs 1 "+
						"-real.seed %d -v\n%s", seed, err, seed, r.story())
				}
			}
		})
	}
	hosts.Wait()
	cancel()
	killer.Wait()
	took := time.Since(began)
	t.Logf("%d runs in %s, %.0f a minute: server killed %d times, %d histories replayed, %+v", sum.runs,
		took.Round(time.Second), float64(sum.runs)/took.Minutes(), s.kills, sum.replayed, sum.counts)
}

// realSum is what several runs have met.
type realSum struct {
	counts
	runs, replayed int
}

func (s *realSum) add(r *realRun) {
	s.runs, s.replayed = s.runs+1, s.replayed+r.replayed
	s.counts.add(counts{r.batches, r.epochs, r.executions, r.count, r.failed})
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
	if got, want := r.outcome().artifact, want.outcome().artifact; got != want {
		return r, fmt.Errorf("invariant 7: the result is %.8s; undisturbed it is %.8s", got, want)
	}
	return r, os.RemoveAll(r.root)
}

// story is what a failed run leaves.
func (r *realRun) story() string {
	journal, _ := os.ReadFile(r.dir.Path("events.jsonl"))
	return strings.Join(r.log, "\n") + "\n" + string(journal)
}

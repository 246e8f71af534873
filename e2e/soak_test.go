package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/e2e/point"
	"github.com/passbook-run/passbook/local"
	"github.com/passbook-run/passbook/process"
)

// What `make soak` sets.
var (
	soakRuns     = flag.Int("soak.runs", 12, "how many runs are soaked")
	soakKills    = flag.Int("soak.kills", 3, "how often the worker of one run is killed, at most")
	soakSeed     = flag.Int64("soak.seed", 11, "of the random moments")
	soakPipeline = flag.String("soak.pipeline", "", "the pipeline; empty: the one of the walk")
)

// TestSoak kills the real worker at random moments of many runs, and tells what each run was doing then.
func TestSoak(t *testing.T) {
	file := small()
	if *soakPipeline != "" {
		file = *soakPipeline
	}
	g := newGrounds(t, file)
	stranger, random := bystander(t), rand.New(rand.NewSource(*soakSeed))
	spans, numbers := map[int][]time.Duration{}, []int{}
	took := g.slowly(t)
	for k := 1; k <= *soakRuns; k++ {
		spans[k], numbers = moments(random, took), append(numbers, k)
	}
	var mu sync.Mutex
	hit, kills := tally{}, 0
	each(t.Context(), 2*runtime.NumCPU(), numbers, func(ctx context.Context, k int) {
		s, err := g.soak(ctx, k, spans[k], stranger)
		mu.Lock()
		defer mu.Unlock()
		if err != nil && ctx.Err() == nil {
			t.Errorf("run %d: %v%s", k, err, s.story())
		}
		for _, d := range s.deaths {
			hit[d.Window]++
			kills++
		}
	})
	t.Logf("%d kills in %d runs of %s, seed %d; the run was:%s", kills, *soakRuns, g.def.Plan.Pipeline, *soakSeed, hit)
	require.Positive(t, kills)
}

// moments are how long each worker of a run is left alive: all of them together no longer than an undisturbed one needs.
func moments(random *rand.Rand, took time.Duration) []time.Duration {
	out := make([]time.Duration, 1+random.Intn(*soakKills))
	for i := range out {
		out[i] = time.Duration(random.Int63n(int64(took) / int64(len(out))))
	}
	return out
}

// thinking is how long a call takes in a soak, so that kills hit calls too.
const thinking = 60 * time.Millisecond

// slow makes every call of the site think.
func (s *site) slow(calls []string) error {
	var faults strings.Builder
	for _, at := range calls {
		fmt.Fprintf(&faults, "- {at: %q, do: slow, seconds: %g, attempt: all}\n", at, thinking.Seconds())
	}
	return s.spoil(faults.String())
}

// polls waits until a worker says that it is at work.
func (s *site) polls(ctx context.Context, cmd *exec.Cmd) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		st, err := local.Read(s.op.Settings.StateDir)
		if err != nil || st.Worker != nil && st.Worker.Process.PID == cmd.Process.Pid {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// slowly runs the pipeline once with calls that think, and says how long a worker was at it.
func (g *grounds) slowly(t *testing.T) time.Duration {
	t.Helper()
	s, err := g.newSite("slowly")
	require.NoError(t, err)
	require.NoError(t, s.slow(g.want.Calls))
	require.NoError(t, s.start(t.Context()))
	begun := time.Now()
	require.NoError(t, s.finish(t.Context()))
	took := time.Since(begun)
	require.NoError(t, s.invariants(g.want))
	return took
}

// soak is one run whose workers live for so long each, and the last one to the end.
func (g *grounds) soak(ctx context.Context, k int, lives []time.Duration, stranger process.Identity) (*site, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := g.newSite(fmt.Sprintf("soak-%04d", k))
	if err != nil {
		return s, err
	}
	if err := s.slow(g.want.Calls); err != nil {
		return s, err
	}
	if err := s.start(ctx); err != nil {
		return s, err
	}
	for _, life := range lives {
		cmd, err := s.program(ctx, nil, "worker")
		if err != nil {
			return s, err
		}
		if err := s.polls(ctx, cmd); err != nil {
			return s, err
		}
		after(life)
		if err := end(cmd); err != nil {
			return s, err
		}
		if err := s.died(point.Point{At: "a random moment"}); err != nil {
			return s, err
		}
	}
	if err := s.finish(ctx); err != nil {
		return s, err
	}
	if err := s.invariants(g.want, stranger); err != nil {
		return s, err
	}
	return s, os.RemoveAll(s.root)
}

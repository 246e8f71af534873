package e2e_test

import (
	"context"
	"errors"
	"flag"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// What `make soak` and `make soak-turns` set.
var (
	soakRuns          = flag.Int("soak.runs", 4, "runs of TestSoak")
	soakInterruptions = flag.Int("soak.interruptions", 12, "interruptions of the workers of all these runs")
	soakControl       = flag.Int("soak.control", 0, "runs of TestSoakDetectsRepeatedPayment")
	soakTurns         = flag.Int("soak.turns", 4, "runs of TestSoakTurns")
	soakKills         = flag.Int("soak.kills", 5, "maximum number of kills in one of them")
	soakSeed          = flag.Int64("soak.seed", 11, "seed of the random moments")
)

// TestSoak kills, stops and upgrades the workers of many runs at random moments, most of them in the middle of a call.
// By the agents' own log every call was started once and answered once.
func TestSoak(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	sum := m.soak(t, m.ordeals(*soakRuns, *soakInterruptions, false))
	for _, kind := range interruptions {
		if kind != upgraded || *soakInterruptions >= 30 { // a call may end while the next worker starts
			require.Positive(t, sum.inCall[kind], "%s never met a call in flight", kind)
		}
	}
	require.Equal(t, *soakRuns*len(m.want.Calls), sum.answered)
	require.Equal(t, sum.answered, sum.started, "the end of a worker ended an agent")
	require.Equal(t, *soakInterruptions, sum.interruptions)
}

// TestSoakDetectsRepeatedPayment soaks in the same way with workers that never find the result of a finished call. It
// runs in the exhaustive form only: TestHarnessDetectsRepeatedCalls shows the same at one point.
func TestSoakDetectsRepeatedPayment(t *testing.T) {
	control := *soakControl
	if *walkAll {
		control = max(control, 3)
	}
	if control == 0 {
		t.Skip("part of make soak and make test-all")
	}
	t.Parallel()
	m := newMixed(t)
	const tries = 10 // runs can be lucky
	for range tries {
		if sum := m.soak(t, m.ordeals(control, 3*control, true)); sum.answered > control*len(m.want.Calls) {
			return
		}
	}
	require.FailNow(t, "no call was repeated by workers that never find a result")
}

// TestSoakTurns kills the worker at random moments of runs that work on a tree. In every fourth run two workers poll.
func TestSoakTurns(t *testing.T) {
	t.Parallel()
	s := &soak{grounds: newGrounds(t, turnsPipeline()), stranger: bystander(t),
		random: rand.New(rand.NewSource(*soakSeed))}
	require.Equal(t, lastChanged, lastChanges(s.want.Changes))
	ordeals := make([]ordeal, *soakTurns)
	for i := range ordeals {
		ordeals[i] = s.ordeal(20*time.Millisecond, 200*time.Millisecond)
		ordeals[i].second = i%4 == 3
		for range 1 + s.random.Intn(*soakKills) { // between two calls, too: a call is short
			ordeals[i].blows = append(ordeals[i].blows,
				blow{kind: killed, calls: 1 + s.random.Intn(len(s.want.Calls)), part: 3 * s.random.Float64()})
		}
		slices.SortStableFunc(ordeals[i].blows, func(a, b blow) int { return a.calls - b.calls })
	}
	require.Positive(t, s.soak(t, ordeals).interruptions)
}

// Kinds of interruptions.
const (
	killed   = "SIGKILL"
	stopped  = "SIGTERM"
	upgraded = "upgrade" // the worker of another build starts, and the old one gets SIGTERM when both poll
)

var interruptions = []string{killed, stopped, upgraded}

// soak is many runs whose workers are interrupted at random moments.
type soak struct {
	*grounds
	stranger process.Identity
	random   *rand.Rand
	runs     int // so far
}

// newMixed returns a soak for all kinds of interruptions. Some of the agents answer with an envelope, some with plain
// text. The second build of the programs is a copy in another folder.
func newMixed(t *testing.T) *soak {
	t.Helper()
	s := &soak{grounds: newGrounds(t, mixedReplies(t)), stranger: bystander(t),
		random: rand.New(rand.NewSource(*soakSeed))}
	build := t.TempDir()
	for _, name := range []string{"worker", "victim", supervisor.Program} {
		require.NoError(t, os.WriteFile(filepath.Join(build, name), read(t, filepath.Join(programs, name)), 0o700))
	}
	s.builds = append(s.builds, build)
	return s
}

// mixedReplies is the small pipeline with plain text as the replies of half of its roles.
func mixedReplies(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "mixed")
	require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Dir(small()))))
	for _, edit := range [][2]string{
		{"\nlimits:\n", `
agents:
  plain:
    run: [agent, plain]
    reply: text
    price: {input: 15, output: 75}
    env: [PASSBOOK_CALL_LOG, PASSBOOK_FAULTS]

limits:
`},
		{"prompt: prompts/verifier.md\n", "prompt: prompts/verifier.md\n    agent: plain\n"},
		{"with: {focus: words}\n", "with: {focus: words}\n    agent: plain\n"},
		{"gives: artifact}\n", "gives: artifact, agent: plain}\n"},
	} {
		replace(t, folder, filepath.Base(small()), edit[0], edit[1])
	}
	return filepath.Join(folder, filepath.Base(small()))
}

// ordeal is what happens to one run.
type ordeal struct {
	k         int
	blows     []blow
	think     map[string]time.Duration // how long each call takes, by its name in the call log
	second    bool                     // two workers poll
	forgetful bool                     // the workers never find the result of a finished call
}

// blow is one interruption of a run's worker.
type blow struct {
	kind  string
	calls int     // number of calls that have been started by then
	part  float64 // of the time that the last of them takes
}

// ordeal returns a further run whose calls take a random time.
func (s *soak) ordeal(least, most time.Duration) ordeal {
	s.runs++
	o := ordeal{k: s.runs, think: map[string]time.Duration{}}
	for _, at := range s.want.Calls {
		o.think[at] = least + time.Duration(s.random.Int63n(int64(most-least)))
	}
	return o
}

// ordeals are those of a number of further runs: all kinds of interruptions have equal shares, and each meets a call in
// three of four cases at least.
func (s *soak) ordeals(runs, interrupted int, forgetful bool) []ordeal {
	out := make([]ordeal, runs)
	for i := range out {
		out[i] = s.ordeal(100*time.Millisecond, 2*time.Second)
		out[i].forgetful = forgetful
	}
	calls := len(s.want.Calls)
	for n, at := range s.random.Perm(interrupted) {
		b := blow{kind: interruptions[n%len(interruptions)], calls: 1 + s.random.Intn(calls), part: s.random.Float64()}
		if n/len(interruptions)%4 == 3 {
			b.part += 0.5
		}
		if b.kind == upgraded { // a worker takes time to start, so it is not for the last calls
			b.calls, b.part = min(b.calls, calls-2), b.part/2
		}
		out[at%runs].blows = append(out[at%runs].blows, b)
	}
	for _, o := range out {
		slices.SortStableFunc(o.blows, func(a, b blow) int { return a.calls - b.calls })
	}
	return out
}

// total is what a soak has met.
type total struct {
	interruptions     int
	inCall            map[string]int // interruptions of each kind that met a call of the worker in flight
	started, answered int            // calls, by the agents' own log
}

func (o *total) add(s *site) error {
	for _, d := range s.deaths {
		if o.interruptions++; d.InFlight {
			o.inCall[d.Kind]++
		}
	}
	calls, err := readCalls(s.log)
	starts, answers := counts(calls)
	for at, n := range starts {
		o.started, o.answered = o.started+n, o.answered+answers[at]
	}
	return err
}

// soak executes these runs, ten at once.
func (s *soak) soak(t *testing.T, ordeals []ordeal) *total {
	const atOnce = 10
	numbers := make([]int, len(ordeals))
	for i := range numbers {
		numbers[i] = i
	}
	var mu sync.Mutex
	sum, begun := &total{inCall: map[string]int{}}, time.Now()
	each(t.Context(), atOnce, numbers, func(ctx context.Context, i int) {
		site, err := s.suffer(ctx, ordeals[i])
		mu.Lock()
		defer mu.Unlock()
		if err = errors.Join(err, sum.add(site)); err == nil {
			err = os.RemoveAll(site.root)
		}
		if err != nil && ctx.Err() == nil {
			t.Errorf("run %d: %v%s", ordeals[i].k, err, site.story())
		}
	})
	t.Logf("%d runs, seed %d, %.0f s: %+v", len(ordeals), *soakSeed, time.Since(begun).Seconds(), *sum)
	return sum
}

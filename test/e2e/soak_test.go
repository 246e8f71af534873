package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// What `make soak` and `make soak-turns` set.
var (
	soakRuns          = flag.Int("soak.runs", 10, "how many runs TestSoak has")
	soakInterruptions = flag.Int("soak.interruptions", 30, "how often the workers of all these runs are interrupted")
	soakControl       = flag.Int("soak.control", 3, "how many runs the control of TestSoak has")
	soakTurns         = flag.Int("soak.turns", 10, "how many runs TestSoakTurns has")
	soakKills         = flag.Int("soak.kills", 5, "how often the worker of one of them is killed, at most")
	soakSeed          = flag.Int64("soak.seed", 11, "of the random moments")
)

// TestSoak kills, stops and upgrades the workers of many runs at random moments, most of them in the middle of a call.
// By the agents' own log every call was started once and answered once.
func TestSoak(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	sum := m.soak(t, m.ordeals(*soakRuns, *soakInterruptions, false))
	t.Logf("%s", sum)
	for _, kind := range interruptions {
		require.Positive(t, sum.kinds[kind].inCall, "%s never met a call in flight: this shows nothing", kind)
	}
	require.Zero(t, sum.calls.repeated)
	require.Zero(t, sum.calls.again, "the end of a worker ended an agent")
	require.Equal(t, *soakRuns*len(m.want.Calls), sum.calls.answered)
	require.Equal(t, *soakInterruptions, sum.interruptions())
}

// TestSoakDetectsRepeatedPayment soaks in the same way with workers that never find the result of a finished call.
// Then calls are repeated, and the soak counts them.
func TestSoakDetectsRepeatedPayment(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	const most = 10 // runs can be lucky
	for range most {
		sum := m.soak(t, m.ordeals(*soakControl, 3**soakControl, true))
		t.Logf("results are not looked up: %s", sum)
		if sum.calls.repeated > 0 {
			return
		}
	}
	require.FailNow(t, "no call was repeated by workers that never find a result")
}

// Kinds of interruptions.
const (
	killed   = "SIGKILL"
	stopped  = "SIGTERM"
	upgraded = "upgrade" // the worker of another build is started, and the old one gets SIGTERM when both poll
)

var interruptions = []string{killed, stopped, upgraded}

// mixed are grounds for a soak of all kinds of interruptions. Some of the agents answer with an envelope, some with
// plain text.
type mixed struct {
	*grounds
	stranger process.Identity
	random   *rand.Rand
	runs     int // so far
}

// newMixed makes grounds with a second build of the programs: a copy in another folder.
func newMixed(t *testing.T) *mixed {
	t.Helper()
	m := &mixed{grounds: newGrounds(t, mixedReplies(t)), stranger: bystander(t),
		random: rand.New(rand.NewSource(*soakSeed))}
	build := t.TempDir()
	for _, name := range []string{"worker", "victim", supervisor.Program} {
		require.NoError(t, os.WriteFile(filepath.Join(build, name), read(t, filepath.Join(programs, name)), 0o700))
	}
	m.builds = append(m.builds, build)
	return m
}

// mixedReplies is the small pipeline with plain text as the replies of half of its roles.
func mixedReplies(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "mixed")
	require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Dir(small()))))
	file := filepath.Join(folder, filepath.Base(small()))
	text := string(read(t, file))
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
		require.Equal(t, 1, strings.Count(text, edit[0]), edit[0])
		text = strings.Replace(text, edit[0], edit[1], 1)
	}
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// ordeals are those of a number of further runs: all kinds of interruptions have equal shares.
func (m *mixed) ordeals(runs, interrupted int, forgetful bool) []ordeal {
	kinds := make([]string, interrupted)
	for i := range kinds {
		kinds[i] = interruptions[i%len(interruptions)]
	}
	m.random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	out := make([]ordeal, runs)
	for i := range out {
		m.runs++
		out[i] = ordeal{k: m.runs, think: map[string]time.Duration{}, forgetful: forgetful}
		for _, at := range m.want.Calls {
			out[i].think[at] = 100*time.Millisecond + time.Duration(m.random.Int63n(int64(1900*time.Millisecond)))
		}
		var mine []string
		for n := i; n < len(kinds); n += runs {
			mine = append(mine, kinds[n])
		}
		out[i].blows = m.blows(mine)
	}
	return out
}

// blows spreads interruptions over the calls of a run. An upgrade takes as long as a worker needs to begin, so it is
// not for the last calls.
func (m *mixed) blows(kinds []string) []blow {
	calls := len(m.want.Calls)
	var places []int
	for len(places) < len(kinds) {
		places = append(places, m.random.Perm(calls)...)
	}
	out := make([]blow, len(kinds))
	for i, kind := range kinds {
		out[i] = blow{kind: kind, calls: 1 + places[i], part: 1.2 * m.random.Float64()}
		switch {
		case kind == upgraded:
			out[i].calls, out[i].part = min(out[i].calls, calls-2), out[i].part/2
		case out[i].calls == calls:
			out[i].part *= 0.7 // before it ends
		}
	}
	slices.SortStableFunc(out, func(a, b blow) int { return a.calls - b.calls })
	return out
}

// soak is these runs, ten at once.
func (m *mixed) soak(t *testing.T, ordeals []ordeal) *total {
	const atOnce = 10
	numbers := make([]int, len(ordeals))
	for i := range numbers {
		numbers[i] = i
	}
	var mu sync.Mutex
	sum, begun := &total{kinds: map[string]*struckBy{}, windows: tally{}}, time.Now()
	for _, kind := range interruptions {
		sum.kinds[kind] = &struckBy{}
	}
	each(t.Context(), atOnce, numbers, func(ctx context.Context, i int) {
		s, err := m.grounds.soak(ctx, ordeals[i], m.stranger)
		mu.Lock()
		defer mu.Unlock()
		if err != nil && ctx.Err() == nil {
			t.Errorf("run %d: %v%s", ordeals[i].k, err, s.story())
		}
		sum.add(s)
		if sum.took = time.Since(begun); sum.runs%25 == 0 && sum.runs < len(ordeals) {
			t.Logf("%s", sum)
		}
	})
	return sum
}

// total is what a soak of all kinds of interruptions has met.
type total struct {
	runs     int
	took     time.Duration
	longest  time.Duration // that a worker took to end after SIGTERM
	kinds    map[string]*struckBy
	windows  tally
	calls    spent
	attempts int // that were lost with their worker, by the journals
	unkilled int // of these in runs that met no SIGKILL
}

// struckBy is what one kind of interruption has met.
type struckBy struct {
	n, inCall, calls int // interruptions, those that met a call of the worker in flight, and how many such calls
}

func (o *total) add(s *site) {
	o.runs++
	if !slices.ContainsFunc(s.deaths, func(d death) bool { return d.Kind == killed }) {
		o.unkilled += s.attempts
	}
	for _, d := range s.deaths {
		k := o.kinds[d.Kind]
		k.n, k.calls, o.longest = k.n+1, k.calls+d.InFlight, max(o.longest, d.Took)
		if d.InFlight > 0 {
			k.inCall++
		}
		o.windows[d.Kind+": "+d.Window]++
	}
	o.calls, o.attempts = o.calls.plus(s.spent), o.attempts+s.attempts
}

func (o *total) interruptions() (n int) {
	for _, k := range o.kinds {
		n += k.n
	}
	return n
}

func (o *total) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, %d interruptions, seed %d, %.0f s\n", o.runs, o.interruptions(), *soakSeed,
		o.took.Seconds())
	fmt.Fprintf(&b, "%-8s %6s %10s %10s\n", "", "times", "in a call", "calls hit")
	for _, kind := range interruptions {
		k := o.kinds[kind]
		fmt.Fprintf(&b, "%-8s %6d %10d %10d\n", kind, k.n, k.inCall, k.calls)
	}
	fmt.Fprintf(&b, "a worker that got SIGTERM ended within %.2f s\n", o.longest.Seconds())
	fmt.Fprintf(&b, "calls: %d started, %d answered, %d repeated after an answer, %d repeated without one; lost "+
		"attempts: %d, %d of them in runs without SIGKILL",
		o.calls.started, o.calls.answered, o.calls.repeated, o.calls.again, o.attempts, o.unkilled)
	for _, r := range o.calls.repeats {
		fmt.Fprintf(&b, "\n  %s", r)
	}
	fmt.Fprintf(&b, "\nthe run was:%s", o.windows)
	return b.String()
}

// TestSoakTurns kills the real worker at random moments of runs that work on a tree, and prints what each run was doing
// then.
func TestSoakTurns(t *testing.T) {
	t.Parallel()
	soak{file: turnsPipeline(), runs: *soakTurns, kills: *soakKills, seed: *soakSeed}.run(t)
}

// soak is many runs of one pipeline, each of whose workers is killed a few times.
type soak struct {
	file        string
	runs, kills int
	seed        int64
}

func (o soak) run(t *testing.T) {
	g := newGrounds(t, o.file)
	if o.file == turnsPipeline() {
		require.Equal(t, lastChanged, lastChanges(g.want.Changes))
	}
	stranger, random := bystander(t), rand.New(rand.NewSource(o.seed))
	ordeals, numbers := map[int]ordeal{}, []int{}
	took := g.slowly(t)
	for k := 1; k <= o.runs; k++ {
		ordeals[k], numbers = ordeal{k: k, blows: o.blows(random, took), second: k%4 == 0}, append(numbers, k)
	}
	var mu sync.Mutex
	hit, kills, done, begun := tally{}, 0, 0, time.Now()
	each(t.Context(), 2*runtime.NumCPU(), numbers, func(ctx context.Context, k int) {
		s, err := g.soak(ctx, ordeals[k], stranger)
		mu.Lock()
		defer mu.Unlock()
		if err != nil && ctx.Err() == nil {
			t.Errorf("run %d: %v%s", k, err, s.story())
		}
		for _, d := range s.deaths {
			window := d.Window
			if ordeals[k].second {
				window = "with a second worker: " + window
			}
			hit[window]++
			kills++
		}
		if done++; done%25 == 0 && done < o.runs {
			t.Logf("%d kills in %d runs, %.0f s:%s", kills, done, time.Since(begun).Seconds(), hit)
		}
	})
	t.Logf("%d kills in %d runs of %s, seed %d, %.0f s; an undisturbed run takes %.1f s; the run was:%s",
		kills, o.runs, g.def.Plan.Pipeline, o.seed, time.Since(begun).Seconds(), took.Seconds(), hit)
	require.Positive(t, kills)
	o.everyWindow(t, hit)
}

// aim is a window so short that chance hardly meets it: every fourth kill is for one of them.
func aim(random *rand.Rand) string {
	if random.Intn(4) > 0 {
		return ""
	}
	return []string{projecting, snapshotting, closing}[random.Intn(3)]
}

// everyWindow wants five hits in each window of a long soak of turns. Between two steps there is none: what ends and
// what begins are written at once.
func (o soak) everyWindow(t *testing.T, hit tally) {
	if o.runs < 200 || o.file != turnsPipeline() {
		return
	}
	for _, w := range slices.DeleteFunc(slices.Clone(windows), func(w string) bool { return w == between }) {
		require.GreaterOrEqual(t, hit[w], 5, "hits %s", w)
	}
}

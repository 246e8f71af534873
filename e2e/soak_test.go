package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/e2e/point"
	"github.com/passbook-run/passbook/local"
	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/supervisor"
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

// TestSoak kills, stops and upgrades the workers of many runs at random moments, most of them in the middle of a call. By the agents' own log every call was
// started once and answered once.
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

// TestTheSoakSeesWhatIsPaidForTwice soaks in the same way with workers that never find the result of a finished call. Then calls are repeated, and the soak
// counts them.
func TestTheSoakSeesWhatIsPaidForTwice(t *testing.T) {
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

// mixed are grounds for a soak of all kinds of interruptions. Some of the agents answer with an envelope, some with plain text.
type mixed struct {
	*grounds
	stranger process.Identity
	random   *rand.Rand
	runs     int // so far
}

// newMixed makes grounds with a second build of the programs: a copy in another folder.
func newMixed(t *testing.T) *mixed {
	t.Helper()
	m := &mixed{grounds: newGrounds(t, mixedReplies(t)), stranger: bystander(t), random: rand.New(rand.NewSource(*soakSeed))}
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

// blows spreads interruptions over the calls of a run. An upgrade takes as long as a worker needs to begin, so it is not for the last calls.
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
	fmt.Fprintf(&b, "%d runs, %d interruptions, seed %d, %.0f s\n", o.runs, o.interruptions(), *soakSeed, o.took.Seconds())
	fmt.Fprintf(&b, "%-8s %6s %10s %10s\n", "", "times", "in a call", "calls hit")
	for _, kind := range interruptions {
		k := o.kinds[kind]
		fmt.Fprintf(&b, "%-8s %6d %10d %10d\n", kind, k.n, k.inCall, k.calls)
	}
	fmt.Fprintf(&b, "a worker that got SIGTERM ended within %.2f s\n", o.longest.Seconds())
	fmt.Fprintf(&b, "calls: %d started, %d answered, %d repeated after an answer, %d repeated without one; lost attempts: %d, %d of them in runs without SIGKILL",
		o.calls.started, o.calls.answered, o.calls.repeated, o.calls.again, o.attempts, o.unkilled)
	for _, r := range o.calls.repeats {
		fmt.Fprintf(&b, "\n  %s", r)
	}
	fmt.Fprintf(&b, "\nthe run was:%s", o.windows)
	return b.String()
}

// TestSoakTurns kills the real worker at random moments of runs that work on a tree, and prints what each run was doing then.
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

// everyWindow wants five hits in each window of a long soak of turns. Between two steps there is none: what ends and what begins are written at once.
func (o soak) everyWindow(t *testing.T, hit tally) {
	if o.runs < 200 || o.file != turnsPipeline() {
		return
	}
	for _, w := range slices.DeleteFunc(slices.Clone(windows), func(w string) bool { return w == between }) {
		require.GreaterOrEqual(t, hit[w], 5, "hits %s", w)
	}
}

// ordeal is what happens to one run.
type ordeal struct {
	k         int
	blows     []blow
	think     map[string]time.Duration // how long each call takes, by its name in the call log
	second    bool                     // two workers are at work, and chance says which one dies
	forgetful bool                     // the workers never find the result of a finished call
}

// blow is one interruption of a run's worker.
type blow struct {
	kind  string        // how
	calls int           // how many calls have been started by then; 0: when the run has done something that the last blow did not find
	part  float64       // and then after this part of the time that the last of these calls takes
	life  time.Duration // or after so long
	aim   string        // and when this window opens; empty: wherever the run is
}

// blows are the kills of one run: what the workers are left alone is all together no longer than an undisturbed run needs.
func (o soak) blows(random *rand.Rand, took time.Duration) []blow {
	out := make([]blow, 1+random.Intn(o.kills))
	for i := range out {
		out[i] = blow{kind: killed, life: time.Duration(random.Int63n(int64(took) / int64(len(out))))}
	}
	for i := range out {
		out[i].aim = aim(random)
	}
	return out
}

// thinking is how long a call takes in a soak of turns, so that kills hit calls too.
const thinking = 60 * time.Millisecond

// slow makes every call of the site think.
func (s *site) slow(calls []string) error {
	think := map[string]time.Duration{}
	for _, at := range calls {
		think[at] = thinking
	}
	return s.think(think)
}

// think makes each call of the site take its time.
func (s *site) think(calls map[string]time.Duration) error {
	s.takes = calls
	var faults strings.Builder
	for at, d := range calls {
		fmt.Fprintf(&faults, "- {at: %q, do: slow, seconds: %g, attempt: all}\n", at, d.Seconds())
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

// soak is one run whose workers are interrupted, and that the last one completes.
func (g *grounds) soak(ctx context.Context, o ordeal, stranger process.Identity) (*site, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*patience) // a soak is long, and whoever starts one does something else meanwhile
	defer cancel()
	s, err := g.newSite(fmt.Sprintf("soak-%04d", o.k))
	if err != nil {
		return s, err
	}
	if o.think == nil {
		err = s.slow(g.want.Calls)
	} else {
		err = s.think(o.think)
	}
	if err != nil {
		return s, err
	}
	if err := s.start(ctx); err != nil {
		return s, err
	}
	if err := s.suffer(ctx, o, g.builds); err != nil {
		return s, err
	}
	if err := s.account(); err != nil {
		return s, err
	}
	if o.forgetful { // what was paid for twice is counted, and breaks other promises too
		return s, errors.Join(s.watch.over(), endSupervisors(filepath.Join(s.root, "state", "scratch")))
	}
	if err := s.invariants(g.want, stranger); err != nil {
		return s, err
	}
	return s, os.RemoveAll(s.root)
}

// account keeps what the agents' log and the journal have in the end.
func (s *site) account() error {
	now, err := look(s.dir, s.log)
	s.spent, s.attempts = judge(now.Calls), len(of[run.PassAttempt](now.Events, run.KindPassAttempt))
	return err
}

// suffer interrupts worker after worker, and has those that are left complete the run. builds are the folders of the programs that upgrades change between.
func (s *site) suffer(ctx context.Context, o ordeal, builds []string) (err error) {
	var crew []*exec.Cmd
	defer func() {
		for _, cmd := range crew {
			err = errors.Join(err, end(cmd))
		}
	}()
	build := 0
	hire := func() error {
		cmd, err := s.worker(ctx, builds[build%len(builds)], o.forgetful)
		if err != nil {
			return err
		}
		crew = append(crew, cmd)
		return s.polls(ctx, cmd)
	}
	if err := hire(); err != nil {
		return err
	}
	if o.second {
		if err := hire(); err != nil {
			return err
		}
	}
	for i, b := range o.blows {
		victim := crew[i%len(crew)]
		if b.kind == upgraded { // the old one is told to stop when the new one is at work
			if _, err := s.asked(ctx, b.calls); err != nil {
				return err
			}
			build++
			if err := hire(); err != nil {
				return err
			}
		}
		if err := s.awaits(ctx, i, b); err != nil {
			return err
		}
		crew = slices.DeleteFunc(crew, func(cmd *exec.Cmd) bool { return cmd == victim })
		if err := s.strike(b.kind, victim, crew); err != nil {
			return err
		}
		if b.kind == upgraded {
			continue
		}
		if err := hire(); err != nil {
			return err
		}
	}
	return s.ended(ctx)
}

// awaits returns at the moment of a blow.
func (s *site) awaits(ctx context.Context, i int, b blow) error {
	switch {
	case b.calls > 0:
		at, err := s.asked(ctx, b.calls)
		if err != nil {
			return err
		}
		b.life = time.Duration(b.part * float64(s.takes[at]))
	case i%4 > 0: // every fourth kill may hit a run that still waits for the last worker's heartbeat
		if err := s.goesOn(ctx); err != nil {
			return err
		}
	}
	after(b.life)
	if b.aim == "" {
		return nil
	}
	return s.meets(ctx, b.aim)
}

// asked waits until that number of calls has been started, and names the last of them.
func (s *site) asked(ctx context.Context, n int) (string, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		calls, err := readCalls(s.log)
		if err != nil {
			return "", err
		}
		seen := map[string]bool{}
		for _, c := range calls {
			if seen[c.At] = true; len(seen) == n {
				return c.At, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("wait for call %d: %w", n, ctx.Err())
		case <-tick.C:
		}
	}
}

// goesOn waits until the run does something that the last death did not find.
func (s *site) goesOn(ctx context.Context) error {
	left := s.deaths[len(s.deaths)-1].Left
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		journal, err := sizeOf(filepath.Join(s.dir, rundir.EventsFile))
		if err != nil {
			return err
		}
		calls, err := readCalls(s.log)
		if err != nil || journal > len(left.Journal) || len(calls) > len(left.Calls) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if n := len(left.Events); n > 0 && left.Events[n-1].Kind == run.KindRunEnd {
			return nil
		}
	}
}

// meets waits for the beginning of a window, or for the end of the run.
func (s *site) meets(ctx context.Context, window string) error {
	journal := filepath.Join(s.dir, rundir.EventsFile)
	seen, err := sizeOf(journal)
	if err != nil {
		return err
	}
	over, err := opens(journal, 0, closing)
	if err != nil {
		return err
	}
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for !over {
		if window == projecting && durable.ReadOwner(filepath.Join(s.dir, rundir.LockFile)).PID != 0 {
			return nil
		}
		size, err := sizeOf(journal)
		if err != nil {
			return err
		}
		if size > seen {
			if over, err = opens(journal, seen, window); err != nil {
				return err
			}
			seen = size
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// opens says that a line behind a place of a journal is one that a window begins with, or the run's last.
func opens(journal string, from int, window string) (bool, error) {
	raw, err := os.ReadFile(journal)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	complete, _ := lines(raw[from:])
	for _, line := range complete {
		e, err := run.ParseEvent(line)
		if err != nil {
			continue // the rest of a line that was being written
		}
		var p run.PassEnd
		if e.Decode(&p); e.Kind == run.KindRunEnd || window == snapshotting && e.Kind == run.KindPassEnd && p.Turn() {
			return true, nil
		}
	}
	return false, nil
}

// sizeOf is a file's; a missing one has none.
func sizeOf(name string) (int, error) {
	fi, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return int(fi.Size()), nil
}

// worker starts the real worker of a build, or one that never finds the result of a finished call.
func (s *site) worker(ctx context.Context, build string, forgetful bool) (*exec.Cmd, error) {
	if forgetful {
		return s.launch(ctx, []string{point.Plan{Forget: true}.Setting()}, filepath.Join(build, "victim"), "worker")
	}
	return s.launch(ctx, nil, filepath.Join(build, "worker"))
}

// strike interrupts a worker and looks at what it left. The others stand still meanwhile: what they do is not what it left.
func (s *site) strike(kind string, victim *exec.Cmd, others []*exec.Cmd) (err error) {
	calls, err := readCalls(s.log)
	if err != nil {
		return err
	}
	running, begun := inFlight(calls, victim.Process.Pid), time.Now()
	if kind != killed {
		if err := dismiss(victim); err != nil {
			return err
		}
	}
	took := time.Since(begun)
	for _, cmd := range others {
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
	}
	if kind == killed {
		err = end(victim)
	}
	if err == nil {
		err = s.died(point.Point{At: "a random moment, by " + kind})
	}
	if n := len(s.deaths); err == nil {
		s.deaths[n-1].Kind, s.deaths[n-1].InFlight, s.deaths[n-1].Took = kind, running, took
	}
	for _, cmd := range others {
		err = errors.Join(err, cmd.Process.Signal(syscall.SIGCONT))
	}
	return err
}

// dismiss asks a worker to stop, and waits until it has.
func dismiss(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }) // then Wait gives an error
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("a worker that was told to stop: %w", err)
	}
	return nil
}

// inFlight is how many calls of a worker run, and are not answered.
func inFlight(calls []callLine, worker int) int {
	last := map[string]callLine{}
	for _, c := range calls {
		last[c.At] = c
	}
	n := 0
	for _, c := range last {
		if _, alive := agentOf(c); alive && c.Event == "start" && makerOf(c) == worker {
			n++
		}
	}
	return n
}

// makerOf is the number of the process that a call belongs to, by the delivery's own record; 0: not written down, or not any more.
func makerOf(c callLine) int {
	var id process.Identity
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(c.Dir), "worker.json"))
	if err != nil || json.Unmarshal(raw, &id) != nil {
		return 0
	}
	return id.PID
}

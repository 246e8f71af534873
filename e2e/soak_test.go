package e2e_test

import (
	"context"
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
)

// What `make soak` sets.
var (
	soakRuns     = flag.Int("soak.runs", 12, "how many runs are soaked")
	soakKills    = flag.Int("soak.kills", 3, "how often the worker of one run is killed, at most")
	soakSeed     = flag.Int64("soak.seed", 11, "of the random moments")
	soakPipeline = flag.String("soak.pipeline", "", "the pipeline; empty: the one of the walk; turns: the example of that name")
)

// TestSoak kills the real worker at random moments of many runs, and tells what each run was doing then.
func TestSoak(t *testing.T) {
	t.Parallel()
	file := small()
	switch *soakPipeline {
	case "":
	case "turns":
		file = turnsPipeline()
	default:
		file = *soakPipeline
	}
	soak{file: file, runs: *soakRuns, kills: *soakKills, seed: *soakSeed}.run(t)
}

// TestSoakTurns is the short form for a run that works on a tree.
func TestSoakTurns(t *testing.T) {
	t.Parallel()
	soak{file: turnsPipeline(), runs: 10, kills: 5, seed: *soakSeed}.run(t)
}

// TestTheSoakSeesWhatIsPaidForTwice soaks with workers that never find an earlier answer, until a run is found whose call was paid for twice.
func TestTheSoakSeesWhatIsPaidForTwice(t *testing.T) {
	t.Parallel()
	g := newGrounds(t, turnsPipeline())
	o := soak{file: turnsPipeline(), kills: 5}
	stranger, random := bystander(t), rand.New(rand.NewSource(*soakSeed))
	took := g.slowly(t)
	const most = 40
	ordeals, numbers := map[int]ordeal{}, []int{}
	for k := 1; k <= most; k++ {
		ordeals[k], numbers = ordeal{k: k, lives: o.moments(random, took), forgetful: true}, append(numbers, k)
	}
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	var mu sync.Mutex
	var seen []string
	each(ctx, 2*runtime.NumCPU(), numbers, func(ctx context.Context, k int) {
		if ctx.Err() != nil {
			return
		}
		s, err := g.soak(ctx, ordeals[k], stranger)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil || ctx.Err() != nil:
		case slices.Contains(broken(err), 4):
			seen = append(seen, fmt.Sprintf("run %d: %v", k, err))
			enough()
		default:
			t.Errorf("run %d: %v%s", k, err, s.story())
		}
	})
	require.NotEmpty(t, seen, "nothing was paid for twice in %d runs with workers that never find an answer", most)
	t.Log(seen[0])
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
		lives := o.moments(random, took)
		ordeals[k], numbers = ordeal{k: k, lives: lives, aims: aims(random, len(lives)), second: k%4 == 0}, append(numbers, k)
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

// aims are windows so short that chance hardly meets them: every fourth kill is for one of them.
func aims(random *rand.Rand, n int) []string {
	out := make([]string, n)
	for i := range out {
		if random.Intn(4) == 0 {
			out[i] = []string{projecting, snapshotting, closing}[random.Intn(3)]
		}
	}
	return out
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
	lives     []time.Duration // how long a worker lives, one after the other; the last one goes on to the end
	aims      []string        // for each of them a window in which it is to die; empty: wherever that is
	second    bool            // two workers are at work, and chance says which one dies
	forgetful bool            // the workers never find an earlier answer
}

// moments are how long each worker of a run is left alone: all of them together no longer than an undisturbed one needs.
func (o soak) moments(random *rand.Rand, took time.Duration) []time.Duration {
	out := make([]time.Duration, 1+random.Intn(o.kills))
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
func (g *grounds) soak(ctx context.Context, o ordeal, stranger process.Identity) (*site, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*patience) // a soak is long, and whoever starts one does something else meanwhile
	defer cancel()
	s, err := g.newSite(fmt.Sprintf("soak-%04d", o.k))
	if err != nil {
		return s, err
	}
	if err := s.slow(g.want.Calls); err != nil {
		return s, err
	}
	if err := s.start(ctx); err != nil {
		return s, err
	}
	if err := s.suffer(ctx, o); err != nil {
		return s, err
	}
	if err := s.invariants(g.want, stranger); err != nil {
		return s, err
	}
	return s, os.RemoveAll(s.root)
}

// suffer kills worker after worker, and has those that are left go on to the end.
func (s *site) suffer(ctx context.Context, o ordeal) (err error) {
	var crew []*exec.Cmd
	defer func() {
		for _, cmd := range crew {
			err = errors.Join(err, end(cmd))
		}
	}()
	hire := func() error {
		cmd, err := s.worker(ctx, o.forgetful)
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
	for i, life := range o.lives {
		if i%4 > 0 { // every fourth kill may hit a run that still waits for the last worker's heartbeat
			if err := s.goesOn(ctx); err != nil {
				return err
			}
		}
		after(life)
		if o.aims != nil && o.aims[i] != "" {
			if err := s.meets(ctx, o.aims[i]); err != nil {
				return err
			}
		}
		victim := crew[i%len(crew)]
		crew = slices.DeleteFunc(crew, func(cmd *exec.Cmd) bool { return cmd == victim })
		if err := s.killOne(victim, crew); err != nil {
			return err
		}
		if err := hire(); err != nil {
			return err
		}
	}
	return s.ended(ctx)
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

// worker starts the real worker, or one that never finds an earlier answer.
func (s *site) worker(ctx context.Context, forgetful bool) (*exec.Cmd, error) {
	if forgetful {
		return s.program(ctx, []string{point.Plan{Forget: true}.Setting()}, "victim", "worker")
	}
	return s.program(ctx, nil, "worker")
}

// killOne ends a worker the hard way and looks at what it left. The others stand still meanwhile: what they do is not what it left.
func (s *site) killOne(victim *exec.Cmd, others []*exec.Cmd) error {
	for _, cmd := range others {
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
	}
	err := end(victim)
	if err == nil {
		err = s.died(point.Point{At: "a random moment"})
	}
	for _, cmd := range others {
		err = errors.Join(err, cmd.Process.Signal(syscall.SIGCONT))
	}
	return err
}

package simulation_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
)

var (
	runs      = flag.Int("sim.runs", 25, "runs of TestSimulation")
	seed      = flag.Uint64("sim.seed", 1, "seed of its first run; the next one has the next seed")
	only      = flag.String("sim.only", "", "disturbances that happen, as a failure lists them, separated by semicolons")
	keepGoing = flag.Bool("sim.all", false, "continue after a failure")
	atOnce    = flag.Int("sim.parallel", runtime.GOMAXPROCS(0), "runs at the same time")
	verbose   = flag.Bool("sim.log", false, "print the steps of each run")
)

// outcome is what became of one run.
type outcome struct {
	err      error
	log      []string
	journal  string
	artifact string   // digest; of the tree, if it works on one
	happened []string // disturbances
	steps    int      // of workers on the disk
	counts   counts
}

// counts is what happened in runs.
type counts struct {
	batches, epochs, executions int
	disturbances                map[disturbance]int
	faults                      map[string]int // of agents
}

func newCounts() counts { return counts{disturbances: map[disturbance]int{}, faults: map[string]int{}} }

func (c *counts) add(o counts) {
	c.batches, c.epochs, c.executions = c.batches+o.batches, c.epochs+o.epochs, c.executions+o.executions
	for k, n := range o.disturbances {
		c.disturbances[k] += n
	}
	for k, n := range o.faults {
		c.faults[k] += n
	}
}

// simulate executes the run of a seed and a plan.
func simulate(t *testing.T, seed uint64, p plan, f fault) (o outcome) {
	root, leave := folder(t, seed)
	defer leave()
	var w *world
	defer func() {
		if p := recover(); p != nil { // a goroutine is left that nothing wakes
			if o = w.outcome(); w.left { // the environment leaves one behind if a workflow ends between two attempts
				return
			}
			t.Fatalf("seed %d: %v\n%s", seed, p, strings.Join(w.log[max(0, len(w.log)-40):], "\n"))
		}
	}()
	synctest.Test(t, func(*testing.T) {
		w = newWorld(seed, root, p, f)
		w.play()
		w.ended()
	})
	return w.outcome()
}

// outcome is what became of the run.
func (w *world) outcome() outcome {
	o := outcome{err: w.failure(), log: w.log, journal: string(w.journal), happened: w.happened, steps: w.steps,
		counts: counts{w.batches, w.epochs, w.executions, w.count, w.failed}}
	if m, err := w.dir.Meta(); err == nil && m.State.Artifact != nil {
		o.artifact = m.State.Artifact.Digest
	} else if err == nil && m.Workspace != nil {
		o.artifact = m.Workspace.Tree
	}
	return o
}

// folder returns an empty folder in memory. Its name follows from the seed: the journal contains it, and digests of
// that are names of files, so another name is another run. Only one run has it at a time.
func folder(t *testing.T, seed uint64) (root string, leave func()) {
	memory := "/dev/shm"
	if fi, err := os.Stat(memory); err != nil || !fi.IsDir() {
		memory = "/tmp"
	}
	const folders = 64
	root = filepath.Join(memory, fmt.Sprintf("passbook-simulation-%d-%02d", os.Getuid(), seed%folders))
	lock, err := (disk.Disk{}).WaitLock(t.Context(), root+".lock", disk.Self("simulation", time.Now()))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(root))
	require.NoError(t, os.Mkdir(root, 0o700))
	return root, func() { require.NoError(t, errors.Join(os.RemoveAll(root), lock.Remove())) }
}

// TestSimulation executes several runs at the same time, each in its folder.
func TestSimulation(t *testing.T) {
	began, all, seeds := time.Now(), newCounts(), make(chan uint64)
	var mu sync.Mutex
	var each sync.WaitGroup
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a run needs little memory
	for range *atOnce {
		each.Go(func() {
			for s := range seeds {
				t.Run(fmt.Sprint("seed ", s), func(t *testing.T) {
					o := one(t, s)
					mu.Lock()
					defer mu.Unlock()
					all.add(o.counts)
				})
			}
		})
	}
	for s := *seed; s < *seed+uint64(*runs) && (*keepGoing || !t.Failed()); s++ {
		seeds <- s
	}
	close(seeds)
	each.Wait()
	t.Logf("%d runs in %s: %+v", *runs, time.Since(began).Round(time.Millisecond), all)
	if *runs > 20 && !t.Failed() { // otherwise it shows nothing
		for _, k := range disturbances {
			require.Positive(t, all.disturbances[k], "%s never happened: %+v", k, all)
		}
		require.True(t, all.epochs > 0 && all.executions > *runs, "what did not happen? %+v", all)
	}
}

// one executes the run of a seed.
func one(t *testing.T, s uint64) outcome {
	p := draw(s)
	if *only != "" {
		p.only = strings.Split(*only, ";")
	}
	o, err := judge(t, s, p)
	if *verbose {
		t.Logf("seed %d:\n%s", s, strings.Join(o.log, "\n"))
	}
	if err != nil {
		t.Errorf("%v; %s", err, again(t, s, p, o))
	}
	return o
}

// judge executes a run, and undisturbed if it must have the same result then.
func judge(t *testing.T, s uint64, p plan) (outcome, error) {
	o := simulate(t, s, p, "")
	calm, ok := p.undisturbed()
	if o.err != nil || !ok {
		return o, o.err
	}
	want := simulate(t, s, calm, "")
	if want.err != nil {
		return o, fmt.Errorf("undisturbed: %w", want.err)
	}
	return o, o.sameResult(want)
}

// sameResult requires the result of an undisturbed run (7).
func (o outcome) sameResult(want outcome) error {
	if o.artifact != want.artifact {
		return fmt.Errorf("invariant 7: the result is %.8s; undisturbed it is %.8s", o.artifact, want.artifact)
	}
	return nil
}

// again describes a failure: how to see it again, the disturbances that suffice for it, and its last steps.
func again(t *testing.T, s uint64, p plan, o outcome) string {
	least, small := shrink(t, s, p, o)
	command := fmt.Sprintf("go test ./test/simulation -run '^TestSimulation$' -sim.runs 1 -sim.seed %d -sim.log -v", s)
	if *verbose {
		t.Logf("its journal:\n%s", small.journal)
	}
	return fmt.Sprintf("seed %d: %s\nthe same with %d of %d disturbances: %s -sim.only '%s'\n%s", s, command, len(least),
		len(o.happened), command, strings.Join(least, ";"), strings.Join(small.log[max(0, len(small.log)-40):], "\n"))
}

// shrink removes disturbances as long as the run fails, in halves first.
func shrink(t *testing.T, s uint64, p plan, o outcome) ([]string, outcome) {
	const tries = 60
	least := o.happened
	for size, n := max(1, len(least)/2), 0; size > 0 && n < tries; size /= 2 {
		for at := 0; at < len(least) && n < tries; n++ {
			p.only = append(slices.Clone(least[:at]), least[min(len(least), at+size):]...)
			if p.only == nil {
				p.only = []string{}
			}
			if smaller, err := judge(t, s, p); err != nil {
				least, o = p.only, smaller
			} else {
				at += size
			}
		}
	}
	return least, o
}

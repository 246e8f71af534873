package simulation_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
)

var (
	runs    = flag.Int("sim.runs", 25, "runs of TestSimulation")
	seed    = flag.Uint64("sim.seed", 1, "seed of its first run; the next one has the next seed")
	verbose = flag.Bool("sim.log", false, "print the steps of each run")
)

// outcome is what became of one run.
type outcome struct {
	err      error
	log      []string
	journal  string
	artifact string // digest
	counts   counts
}

// counts is what happened in runs.
type counts struct {
	batches, crashes, losses, kills, messages, epochs, executions int
}

func (c *counts) add(o counts) {
	c.batches, c.crashes, c.losses, c.kills = c.batches+o.batches, c.crashes+o.crashes, c.losses+o.losses, c.kills+o.kills
	c.messages, c.epochs, c.executions = c.messages+o.messages, c.epochs+o.epochs, c.executions+o.executions
}

// simulate executes the run of a seed and a plan.
func simulate(t *testing.T, seed uint64, p plan, f fault) (o outcome) {
	root := folder(t)
	var w *world
	defer func() {
		if p := recover(); p != nil { // a goroutine is left that nothing wakes
			t.Fatalf("%v\n%s", p, again(seed, w.log))
		}
	}()
	synctest.Test(t, func(*testing.T) {
		w = newWorld(seed, root, p, f)
		w.play()
		w.ended()
	})
	o = outcome{err: w.failure(), log: w.log, journal: string(w.journal), counts: counts{
		w.batches, w.crashes, w.losses, w.kills, w.messages, w.epochs, w.executions,
	}}
	if m, err := w.dir.Meta(); err == nil && m.State.Artifact != nil {
		o.artifact = m.State.Artifact.Digest
	}
	return o
}

// folder returns an empty folder in memory, always of the same name: the journal contains it, and digests of that are
// names of files, so another name is another run. Only one process has it at a time.
func folder(t *testing.T) string {
	memory := "/dev/shm"
	if fi, err := os.Stat(memory); err != nil || !fi.IsDir() {
		memory = "/tmp"
	}
	root := filepath.Join(memory, fmt.Sprintf("passbook-simulation-%d", os.Getuid()))
	held.Do(func() {
		_, err := durable.WaitLock(t.Context(), root+".lock", durable.Self("simulation", time.Now()))
		require.NoError(t, err)
	})
	require.NoError(t, os.RemoveAll(root))
	require.NoError(t, os.Mkdir(root, 0o700))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	return root
}

var held sync.Once // the lock of the folder, until this process ends

func TestSimulation(t *testing.T) {
	began, all := time.Now(), counts{}
	for n := range *runs {
		s := *seed + uint64(n)
		p := draw(s)
		o := simulate(t, s, p, "")
		all.add(o.counts)
		if *verbose {
			t.Logf("seed %d:\n%s", s, strings.Join(o.log, "\n"))
		}
		require.NoError(t, o.err, again(s, o.log))
		if calm, ok := p.undisturbed(); ok {
			want := simulate(t, s, calm, "")
			require.NoError(t, want.err, again(s, want.log))
			require.Equal(t, want.artifact, o.artifact, "invariant 7: undisturbed it is another artifact; %s", again(s, o.log))
		}
	}
	took := time.Since(began)
	t.Logf("%d runs in %s, %.0f a minute: %+v", *runs, took.Round(time.Millisecond), float64(*runs)/took.Minutes(), all)
	if *runs > 20 { // otherwise it shows nothing
		require.True(t, all.crashes > 0 && all.losses > 0 && all.kills > 0 && all.messages > 0 && all.epochs > 0 &&
			all.executions > *runs, "what did not happen? %+v", all)
	}
}

// again says how to see a failure again, and what happened last.
func again(seed uint64, log []string) string {
	return fmt.Sprintf("seed %d: go test ./test/simulation -run '^TestSimulation$' -sim.runs 1 -sim.seed %d -sim.log "+
		"-v\n%s", seed, seed, strings.Join(log[max(0, len(log)-40):], "\n"))
}

// TestSameSeedSameRun executes runs twice: the seed decides all of it.
func TestSameSeedSameRun(t *testing.T) {
	for s := *seed; s < *seed+4; s++ {
		first, second := simulate(t, s, draw(s), ""), simulate(t, s, draw(s), "")
		require.Equal(t, first.journal, second.journal, "seed %d", s)
		require.Equal(t, first.log, second.log, "seed %d", s)
	}
}

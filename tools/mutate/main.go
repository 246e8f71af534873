// Mutate plants faults in packages of Passbook and reports which of them their tests detect.
//
// A mutant is one small change of one function: another operator or constant, a statement left out, two fields of a
// struct exchanged. All chosen mutants are compiled into the same test programs, each as a copy of its function, and
// an environment variable selects the one that is active, so that thousands of test processes need one build. The
// sources on disk are not changed: the compiler reads the mutants from an overlay.
//
// Only tests that execute the changed statement run, and the first that fails ends the search. A mutant is detected if
// a test fails or does not end, and a gap if all of these tests pass. If some of them did not run, because of -slowest,
// -budget or a busy machine, it is undecided and does not count.
//
// The faults of a file, such as planted.txt, are changes that the tests must detect. Mutants that no test can detect are
// listed with a reason in equivalent.txt.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

type options struct {
	number   int           // of mutants over all targets
	seed     uint64        // of the sample
	packages string        // folders, divided by commas; empty means all
	workers  int           // processes at the same time
	slowest  time.Duration // slower tests are left out
	budget   time.Duration // of all tests that look for one mutant; 0 means all of them
	rate     float64       // kill rate in percent of all mutants together
	own      bool          // run only the tests of the changed package
	only     string        // expression: mutants whose line in the report matches
	work     string        // folder of builds; empty means a temporary one
	list     bool          // print the mutants and stop
	plant    string        // file with faults that are planted instead of a sample
}

func main() {
	var o options
	flag.IntVar(&o.number, "n", 600, "number of mutants, divided over the packages by size")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the sample")
	flag.StringVar(&o.packages, "packages", "", "folders of packages, divided by commas (default: all targets)")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "test processes at the same time")
	flag.DurationVar(&o.slowest, "slowest", 2*time.Minute, "leave out tests that take more CPU time without a mutant")
	flag.DurationVar(&o.budget, "budget", 0, "run tests up to this sum of CPU time for each mutant (default: all)")
	flag.Float64Var(&o.rate, "rate", 0, "fail if the kill rate of all mutants together is below this percentage")
	flag.BoolVar(&o.own, "own", false, "run only the tests of the changed package itself")
	flag.StringVar(&o.only, "only", "", "regular expression: only mutants whose description matches")
	flag.StringVar(&o.work, "work", "", "keep the builds in this folder")
	flag.BoolVar(&o.list, "list", false, "list the chosen mutants and stop")
	flag.StringVar(&o.plant, "plant", "", "plant the faults of a file, one a line: NAME, FILE, FUNCTION, OLD, NEW, with "+
		"tabs between; no sample")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, o); {
	case errors.Is(err, errMissed):
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
}

// errMissed means that the tests detect less than they must.
var errMissed = errors.New("the tests miss faults that they must detect")

func run(ctx context.Context, o options) error {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return fmt.Errorf("find the root of the checkout: %w", err)
	}
	known, planting := passbook, []namedFault(nil)
	if o.plant != "" {
		all, err := readPlanted(o.plant)
		if err != nil {
			return err
		}
		known, planting = planted(all)
		o.number = 0
	}
	code, err := load(ctx, strings.TrimSpace(string(out)), known, o)
	if err != nil {
		return err
	}
	code.helpers, code.faults, code.equivalent = helpers, planting, "tools/mutate/equivalent.txt"
	return mutate(ctx, os.Stdout, code, o)
}

// mutate plants the mutants that o chooses and writes to w the outcomes.
func mutate(ctx context.Context, w io.Writer, code *source, o options) error {
	begun := time.Now()
	mutants, err := choose(code, o)
	if err != nil {
		return err
	}
	files := code.rewrite(mutants)
	for _, m := range mutants {
		if m.broken && m.kind == fault {
			return fmt.Errorf("plant fault %q: it does not compile", m.name)
		}
	}
	mutants = compiling(mutants)
	if o.list {
		for _, m := range mutants {
			fmt.Fprintln(w, m)
		}
		return nil
	}
	work := o.work
	if work == "" {
		if work, err = os.MkdirTemp("", "mutate"); err != nil {
			return err
		}
		defer remove(w, work)
	}
	programs, err := build(ctx, code, files, work)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "mutate: %d mutants compiled in %.0f s\n", len(mutants), time.Since(begun).Seconds())
	r := &runner{options: o, w: w, code: code, programs: programs, work: work}
	if err := r.reach(ctx); err != nil {
		return err
	}
	fmt.Fprintf(w, "mutate: %d tests know what they reach after %.0f s\n", len(r.tests), time.Since(begun).Seconds())
	stopped := r.kill(ctx, mutants)
	if stopped != nil && ctx.Err() == nil {
		return stopped
	}
	for _, m := range mutants {
		if m.outcome == "" {
			m.outcome = undecided
		}
	}
	return errors.Join(stopped, report(w, code.targets, mutants, o, time.Since(begun)))
}

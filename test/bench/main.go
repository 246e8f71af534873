// Command bench measures what the engine adds to a pass, with an agent that answers at once: runs on the embedded
// server, or on the cluster in TEMPORAL_ADDRESS.
//
// It prints the table of README.md. It writes only to a temporary folder, and ends every process that it starts.
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
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// size is one row of the table: runs at once, and passes of each.
type size struct{ Runs, Passes int }

// settings are the flags.
type settings struct {
	Root  string // the checkout
	Temp  string // parent of the temporary folder
	Reps  int
	Sizes []size
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, args []string, out io.Writer) (err error) {
	s, err := parse(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.Temp, "passbook-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	programs := filepath.Join(dir, "bin")
	if err := build(ctx, s.Root, programs); err != nil {
		return err
	}
	return load(ctx, s, dir, programs, out)
}

func parse(args []string) (settings, error) {
	s := settings{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&s.Root, "root", ".", "the checkout")
	flags.StringVar(&s.Temp, "temp", "", "parent of the temporary folder; it should be on a disk, not in memory")
	flags.IntVar(&s.Reps, "reps", 3, "number of measurements; the tables have medians")
	sizes := flags.String("sizes", "1x56,16x16,64x8,1x1000", "the rows: runs at once x passes of each")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.Reps < 1 {
		return s, fmt.Errorf("-reps is %d; it must be at least 1", s.Reps)
	}
	var err error
	if s.Root, err = filepath.Abs(s.Root); err != nil {
		return s, err
	}
	s.Sizes, err = parseSizes(*sizes)
	return s, err
}

func parseSizes(text string) ([]size, error) {
	var out []size
	for part := range strings.SplitSeq(text, ",") {
		runs, passes, _ := strings.Cut(part, "x")
		r, errRuns := strconv.Atoi(runs)
		p, errPasses := strconv.Atoi(passes)
		if errRuns != nil || errPasses != nil || r < 1 || p < 1 {
			return nil, fmt.Errorf("-sizes: %q is not a size; write runs x passes, as in 16x56", part)
		}
		out = append(out, size{r, p})
	}
	return out, nil
}

// build builds Passbook's programs and the agent.
func build(ctx context.Context, root, programs string) error {
	for _, args := range [][]string{
		{"scripts/programs", programs},
		{"go", "build", "-buildvcs=false", "-trimpath", "-o", programs + string(filepath.Separator),
			"./test/bench/agent"},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = root
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build the programs: %w\n%s", err, output)
		}
	}
	return nil
}

// where describes the machine.
func where() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		text = []byte("unknown")
	}
	return fmt.Sprintf("%s/%s, %d CPUs, load average %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		strings.Fields(string(text))[0])
}

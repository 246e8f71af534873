// Command bench measures what the engine adds to a pass, with an agent that answers at once: the real worker on the
// embedded server, or on the cluster in TEMPORAL_ADDRESS, compared with a plain loop that starts the same agent and
// does the same durable writes.
//
// Times of passes are read from the journals, sizes of histories from Temporal. It prints Markdown: the tables of
// docs/performance.md. It writes only to a temporary folder, and ends every process that it starts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// size is one row of the table.
type size struct{ Runs, Passes int }

// settings are the flags.
type settings struct {
	Root  string // the checkout
	Temp  string // parent of the temporary folder
	Reps  int
	Sizes []size
	Named bool // each set of passes ends with a named checkpoint

	Server bool     // compare settings of the embedded server
	Other  string   // path of another build of that server, as a row with the same settings
	Peers  bool     // compare with other engines
	Quick  bool     // with few steps and workflows, to try the command
	Only   []string // these columns, or rows; empty: all

	Long    int   // passes of one long run, instead of the table
	Waiting int   // runs that wait for an operator, instead of the table
	Lanes   []int // numbers of lanes, instead of the table
	Start   int   // runs that start together, instead of the table
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
	switch {
	case s.Peers:
		return compare(ctx, s, out)
	case s.Server:
		return vary(ctx, s, out)
	}
	h, err := open(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	switch {
	case s.Long > 0:
		return h.long(ctx, out, s.Long)
	case s.Waiting > 0:
		return h.waiting(ctx, out, s.Waiting)
	case s.Start > 0:
		return h.together(ctx, out, s.Start)
	case len(s.Lanes) > 0:
		return h.lanes(ctx, out, s.Lanes)
	}
	return h.compare(ctx, out)
}

// compare measures the engine beside a plain loop.
func (h *env) compare(ctx context.Context, out io.Writer) error {
	bare, err := h.bare(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, medians of %d. The agent alone takes %s from start to end.\n", h.where(), h.Reps, ms(bare))
	rows, err := h.table(ctx, out)
	histories(out, rows) // also for an interrupted measurement
	if err != nil {
		return err
	}
	synced(out, rows[0].steps, rows[0].Passes)
	return h.dissect(ctx, out, h.Sizes[0].Passes)
}

// table measures all rows, and writes each row when it is measured.
func (h *env) table(ctx context.Context, out io.Writer) ([]measured, error) {
	fmt.Fprintln(out, "\n| runs at once | passes of each | pass to pass: median | p95 | first hundred | last "+
		"hundred | one of all passes | plain loop: pass to pass | one of all passes | ratio |")
	fmt.Fprintln(out, "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	var rows []measured
	for _, row := range h.Sizes {
		m, err := h.measure(ctx, row)
		if err != nil {
			return rows, fmt.Errorf("%d runs of %d passes: %w", row.Runs, row.Passes, err)
		}
		fmt.Fprintln(out, m.times())
		rows = append(rows, m)
	}
	return rows, nil
}

func parse(args []string) (settings, error) {
	s := settings{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&s.Root, "root", ".", "the checkout")
	flags.StringVar(&s.Temp, "temp", "", "parent of the temporary folder; it should be on a disk, not in memory")
	flags.IntVar(&s.Reps, "reps", 3, "number of measurements of each row; the table has medians")
	sizes := flags.String("sizes", "1x56,16x16,64x8,1x1000", "the rows: runs at once x passes of each")
	flags.BoolVar(&s.Named, "checkpoints", true,
		"name a checkpoint after each 8 passes; false: none, as a run of many thousand passes should")
	flags.BoolVar(&s.Peers, "peers", false, "compare with other engines instead (docs/peers.md)")
	flags.BoolVar(&s.Server, "server", false, "compare settings of the embedded server instead")
	flags.StringVar(&s.Other, "other", "", "another build of the embedded server, as the second row of -server")
	flags.BoolVar(&s.Quick, "quick", false, "compare with few steps and workflows, to try the command")
	only := flags.String("only", "",
		"compare these columns of -peers, or rows of -server, separated by semicolons; empty: all")

	flags.IntVar(&s.Long, "long", 0, "measure one run of that many passes instead: whether a pass becomes more expensive")
	flags.IntVar(&s.Waiting, "waiting", 0, "measure that many runs that wait for an operator instead")
	flags.IntVar(&s.Start, "together", 0, "measure that many runs that start together instead")
	flags.Func("lanes", "measure runs with these numbers of lanes instead, as in 10,100,1000", func(text string) error {
		for part := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(part)
			if err != nil || n < 1 {
				return fmt.Errorf("%q is not a number of lanes", part)
			}
			s.Lanes = append(s.Lanes, n)
		}
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.Long%perSet != 0 {
		return s, fmt.Errorf("-long is %d; passes are in sets of %d", s.Long, perSet)
	}
	if s.Reps < 1 {
		return s, fmt.Errorf("-reps is %d; it must be at least 1", s.Reps)
	}
	if *only != "" {
		s.Only = strings.Split(*only, ";")
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
		if errRuns != nil || errPasses != nil || r < 1 || p < perSet || p%perSet != 0 {
			return nil, fmt.Errorf("-sizes: %q is not a size; write runs x passes, as in 16x56, with passes in sets of %d",
				part, perSet)
		}
		out = append(out, size{r, p})
	}
	return out, nil
}

// ms writes a time in milliseconds.
func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/passbook-run/passbook/internal/operations"
)

// measured is one row: its samples, and the number of fsyncs of a pass.
type measured struct {
	size
	all    []sample
	steps  []step
	fsyncs float64
}

// measure fills one row. Engine and plain loop alternate, so that other load on the machine affects both.
func (h *env) measure(ctx context.Context, row size) (measured, error) {
	m := measured{size: row}
	def, err := h.define(row.Passes)
	if err != nil {
		return m, err
	}
	steps, err := h.record(ctx, def)
	if err != nil {
		return m, err
	}
	m.steps, m.fsyncs = steps, float64(fsyncs(steps))/float64(row.Passes)
	for range h.Reps {
		s, err := h.engine(ctx, def, row)
		if err != nil {
			return m, err
		}
		if s.Loop, err = h.loops(ctx, steps, row); err != nil {
			return m, err
		}
		m.all = append(m.all, s)
	}
	return m, nil
}

func (h *env) define(passes int) (operations.Definition, error) {
	return define(filepath.Join(h.temp, fmt.Sprintf("definition-%d", passes)), h.agent(), passes, h.Named)
}

// times is the row of the table of times.
func (m measured) times() string {
	engine, plain := m.time(func(s sample) time.Duration { return s.Each }),
		m.time(func(s sample) time.Duration { return s.Loop.Each })
	first, last := "", ""
	if m.Passes >= 200 {
		first, last = ms(m.time(func(s sample) time.Duration { return s.First })),
			ms(m.time(func(s sample) time.Duration { return s.Last }))
	}
	return fmt.Sprintf("| %d | %d | %s | %s | %s | %s | %s | %s | %s | %.1f |", m.Runs, m.Passes,
		ms(m.time(func(s sample) time.Duration { return median(s.Gaps) })),
		ms(m.time(func(s sample) time.Duration { return quantile(s.Gaps, 0.95) })),
		first, last, ms(engine), ms(m.time(func(s sample) time.Duration { return median(s.Loop.Gaps) })), ms(plain),
		float64(engine)/float64(plain))
}

// histories writes the table of Temporal's histories.
func histories(out io.Writer, rows []measured) {
	fmt.Fprintln(out, "\n| runs at once | passes of each | history events a pass | history bytes a pass | "+
		"executions of a run | fsyncs a pass |")
	fmt.Fprintln(out, "|--:|--:|--:|--:|--:|--:|")
	for _, m := range rows {
		fmt.Fprintf(out, "| %d | %d | %.1f | %.0f | %.0f | %.1f |\n", m.Runs, m.Passes,
			m.number(func(s sample) float64 { return s.Events }),
			m.number(func(s sample) float64 { return s.Bytes }),
			m.number(func(s sample) float64 { return s.Executions }), m.fsyncs)
	}
}

// time is the median of a time over the samples.
func (m measured) time(of func(sample) time.Duration) time.Duration { return middle(m.all, of) }

func (m measured) number(of func(sample) float64) float64 { return middle(m.all, of) }

// dissect writes where the time of a run is spent, according to its history.
func (h *env) dissect(ctx context.Context, out io.Writer, passes int) error {
	def, err := h.define(passes)
	if err != nil {
		return err
	}
	runs, cpu, err := h.batch(ctx, def, 1)
	if err != nil {
		return err
	}
	starts, end, err := passTimes(runs[0].dir.Dir)
	if err != nil {
		return err
	}
	parts := map[string]spent{}
	err = h.executions(ctx, runs[0].id, func(execution string) error {
		return share(h.history(ctx, runs[0].id,
			execution), parts)
	})
	if err != nil {
		return err
	}
	n := time.Duration(passes)
	fmt.Fprintf(out, "\nOne run of %d passes, %s a pass. The worker with its agents uses %s of CPU time a pass, its "+
		"own start included.\n", passes, ms(end.Sub(starts[0])/n), ms(cpu/n))
	fmt.Fprintln(out, "\n| in the history | times a pass | until a worker has it, a pass | until it is done, a pass "+
		"|\n|---|--:|--:|--:|")
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		p := parts[name]
		fmt.Fprintf(out, "| %s | %.2f | %s | %s |\n", name, float64(p.times)/float64(passes), ms(p.wait/n),
			ms(p.work/n))
	}
	return nil
}

// middle is the median of a figure over samples.
func middle[N cmp.Ordered](all []sample, figure func(sample) N) N {
	var out []N
	for _, s := range all {
		out = append(out, figure(s))
	}
	return median(out)
}

func median[N cmp.Ordered](of []N) N { return quantile(of, 0.5) }

// quantile is the smallest value that at least this share of the values does not exceed, or the zero value.
func quantile[N cmp.Ordered](of []N, share float64) (q N) {
	if len(of) == 0 {
		return q
	}
	sorted := slices.Sorted(slices.Values(of))
	rank := int(share*float64(len(sorted)) + 0.999999)
	return sorted[min(max(rank, 1), len(sorted))-1]
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// sample is the result of one repetition of a row.
type sample struct {
	gaps       []time.Duration // between consecutive passes of a run
	each       time.Duration   // from the first pass of all runs to the end of the last, divided by all passes
	cpu        time.Duration   // of the worker and its agents, a pass
	first      time.Duration   // median gap in the first hundred passes of each run
	last       time.Duration   // median gap in the last hundred
	events     float64         // history events a pass
	bytes      float64         // history bytes a pass
	executions float64         // executions of a run
}

// load measures batches of runs that start together, and writes the table.
func load(ctx context.Context, s settings, dir, programs string, out io.Writer) (err error) {
	p := newPassbook(s.Root, programs, filepath.Join(dir, "load"))
	defer func() { err = errors.Join(err, p.stop(ctx)) }()
	if err := p.start(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s; %s; medians of %d\n\n", p.where(), where(), s.Reps)
	fmt.Fprintln(out, "| runs × passes | pass to pass: median | p95 | first hundred | last hundred | one of all | "+
		"CPU of the worker | events a pass | bytes a pass | executions |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, row := range s.Sizes {
		var all []sample
		for rep := range s.Reps {
			one, err := p.batch(ctx, row, fmt.Sprintf("%dx%d-%d", row.Runs, row.Passes, rep))
			if err != nil {
				return fmt.Errorf("%d runs of %d passes: %w", row.Runs, row.Passes, err)
			}
			all = append(all, one)
		}
		fmt.Fprintln(out, cells(row, all))
	}
	return nil
}

// cells is a row of the table.
func cells(row size, all []sample) string {
	at := func(of func(sample) time.Duration) string { return seconds(middle(all, of).Seconds()) }
	first, last := "", ""
	if row.Passes >= 200 {
		first = at(func(s sample) time.Duration { return s.first })
		last = at(func(s sample) time.Duration { return s.last })
	}
	return fmt.Sprintf("| %d × %d | %s | %s | %s | %s | %s | %s | %.1f | %.0f | %.0f |", row.Runs, row.Passes,
		at(func(s sample) time.Duration { return median(s.gaps) }),
		at(func(s sample) time.Duration { return quantile(s.gaps, 0.95) }), first, last,
		at(func(s sample) time.Duration { return s.each }), at(func(s sample) time.Duration { return s.cpu }),
		middle(all, func(s sample) float64 { return s.events }), middle(all, func(s sample) float64 { return s.bytes }),
		middle(all, func(s sample) float64 { return s.executions }))
}

// batch starts runs at the same time on a new worker, and waits until all have ended.
func (p *passbook) batch(ctx context.Context, row size, name string) (s sample, err error) {
	if err := p.endWorker(); err != nil {
		return s, err
	}
	w := work{Steps: row.Passes, Agent: []string{p.agent()}}
	ids := names(name, row.Runs)
	for _, id := range ids {
		if err := p.begin(ctx, id, w); err != nil {
			return s, err
		}
	}
	if err := p.rework(ctx); err != nil {
		return s, err
	}
	worker := p.worker
	var first, last []time.Duration
	var begun, ended time.Time
	for _, id := range ids {
		if _, err := p.await(ctx, id); err != nil {
			return s, err
		}
		starts, end, err := passTimes(p.dir(id))
		if err == nil && len(starts) != row.Passes {
			err = fmt.Errorf("run %s made %d calls for %d passes", id, len(starts), row.Passes)
		}
		if err == nil {
			err = s.weigh(ctx, p, p.ids[id])
		}
		if err != nil {
			return s, err
		}
		g := gaps(starts)
		s.gaps = append(s.gaps, g...)
		first, last = append(first, g[:min(100, len(g))]...), append(last, g[max(0, len(g)-100):]...)
		if begun.IsZero() || starts[0].Before(begun) {
			begun = starts[0]
		}
		if end.After(ended) {
			ended = end
		}
	}
	if err := p.endWorker(); err != nil {
		return s, err
	}
	passes := row.Runs * row.Passes
	s.cpu = (worker.ProcessState.UserTime() + worker.ProcessState.SystemTime()) / time.Duration(passes)
	s.each, s.first, s.last = ended.Sub(begun)/time.Duration(passes), median(first), median(last)
	s.events, s.bytes, s.executions = s.events/float64(passes), s.bytes/float64(passes), s.executions/float64(row.Runs)
	return s, nil
}

// weigh adds the histories of a run, from its last execution back to its first.
func (s *sample) weigh(ctx context.Context, p *passbook, id string) error {
	for execution := ""; ; {
		d, err := p.op.Client.DescribeWorkflowExecution(ctx, id, execution)
		if err != nil {
			return fmt.Errorf("describe run %s: %w", id, err)
		}
		info := d.GetWorkflowExecutionInfo()
		s.events, s.bytes = s.events+float64(info.GetHistoryLength()), s.bytes+float64(info.GetHistorySizeBytes())
		s.executions++
		if execution, err = p.executionBefore(ctx, id, info.GetExecution().GetRunId()); err != nil || execution == "" {
			return err
		}
	}
}

// passTimes returns the start of each pass of a run, and the end of the last one.
func passTimes(dir rundir.Dir) (begun []time.Time, ended time.Time, err error) {
	for line, err := range dir.Lines(0) {
		if err != nil {
			return nil, ended, err
		}
		ev := &line.Event
		if ev.Kind != run.KindPassStart && ev.Kind != run.KindPassEnd {
			continue
		}
		at, err := time.Parse(run.TimeFormat, ev.TS)
		if err != nil {
			return nil, ended, fmt.Errorf("event %d: %w", ev.Seq, err)
		}
		if ev.Kind == run.KindPassStart {
			begun = append(begun, at)
		}
		ended = at
	}
	return begun, ended, nil
}

func (p *passbook) dir(name string) rundir.Dir {
	return rundir.At(filepath.Join(p.temp, "runs", name))
}

func names(id string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d", id, i)
	}
	return out
}

// gaps are the times between neighbours.
func gaps(at []time.Time) []time.Duration {
	var out []time.Duration
	for i := 1; i < len(at); i++ {
		out = append(out, at[i].Sub(at[i-1]))
	}
	return out
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

// seconds writes a time.
func seconds(s float64) string {
	if s >= 1 {
		return plain(s) + " s"
	}
	return plain(s*1000) + " ms"
}

// plain writes a number with two or three significant digits.
func plain(n float64) string {
	switch {
	case n >= 99.95:
		return fmt.Sprintf("%.0f", n)
	case n >= 9.995:
		return fmt.Sprintf("%.1f", n)
	case n >= 0.0995 || n == 0:
		return strings.TrimSuffix(fmt.Sprintf("%.2f", n), ".00")
	}
	return fmt.Sprintf("%.2g", n)
}

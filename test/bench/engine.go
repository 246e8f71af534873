package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// pace is the rate of passes.
type pace struct {
	Gaps []time.Duration // between consecutive passes of a run
	Each time.Duration   // from the first pass of all runs to the end of the last, divided by the number of passes
}

// sample is the result of one repetition.
type sample struct {
	pace
	First      time.Duration // median gap in the first hundred passes of each run
	Last       time.Duration // median gap in the last hundred
	Events     float64       // history events per pass
	Bytes      float64       // history bytes per pass
	Executions float64       // executions per run
	Loop       pace
}

// started is a run of a batch.
type started struct {
	id  string
	dir projector.Dir
}

// batch starts runs at the same time on one worker, and waits until all have ended.
func (h *env) batch(ctx context.Context, def operations.Definition, n int) ([]started, time.Duration, error) {
	runs, err := h.launch(ctx, def, n, durable.Disk{})
	if err != nil {
		return nil, 0, err
	}
	cpu, err := h.worked(ctx, func(ctx context.Context, _ int) error { return h.await(ctx, runs) })
	return runs, cpu, err
}

func (h *env) launch(ctx context.Context, def operations.Definition, n int, disk durable.Disk) ([]started, error) {
	h.batches++
	var runs []started
	for i := range n {
		r, err := h.start(ctx, def, fmt.Sprintf("%d-%d", h.batches, i), disk)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// start starts a run in a directory of that name.
func (h *env) start(ctx context.Context, def operations.Definition, name string, disk durable.Disk) (started, error) {
	dir := projector.Dir{Dir: rundir.At(filepath.Join(h.temp, "runs", name)), Disk: disk}
	st, err := h.op.Start(ctx, def, dir)
	return started{st.RunID, dir}, err
}

func (h *env) await(ctx context.Context, runs []started) error {
	for _, r := range runs {
		if err := h.op.Client.GetWorkflow(ctx, r.id, "").Get(ctx, nil); err != nil {
			return fmt.Errorf("wait for run %s to end: %w", r.id, err)
		}
	}
	return nil
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

// engine measures one batch.
func (h *env) engine(ctx context.Context, def operations.Definition, row size) (sample, error) {
	runs, _, err := h.batch(ctx, def, row.Runs)
	if err != nil {
		return sample{}, err
	}
	var s sample
	var first, last []time.Duration
	var begun, ended time.Time
	for _, r := range runs {
		starts, end, err := passTimes(r.dir.Dir)
		if err != nil {
			return s, err
		}
		if len(starts) != row.Passes {
			return s, fmt.Errorf("run %s made %d calls for %d passes", r.id, len(starts), row.Passes)
		}
		g := gaps(starts)
		s.Gaps, first, last = append(s.Gaps, g...), append(first, g[:min(100, len(g))]...),
			append(last, g[max(0, len(g)-100):]...)
		begun, ended = earlier(begun, starts[0]), later(ended, end)
		if err := s.weigh(ctx, h, r.id); err != nil {
			return s, err
		}
	}
	passes := row.Runs * row.Passes
	s.Each, s.First, s.Last = ended.Sub(begun)/time.Duration(passes), median(first), median(last)
	s.Events, s.Bytes, s.Executions = s.Events/float64(passes), s.Bytes/float64(passes), s.Executions/float64(row.Runs)
	return s, nil
}

// weigh adds the histories of a run.
func (s *sample) weigh(ctx context.Context, h *env, id string) error {
	w, err := h.weigh(ctx, id)
	s.Events, s.Bytes, s.Executions = s.Events+float64(w.events), s.Bytes+float64(w.bytes),
		s.Executions+float64(w.executions)
	return err
}

// earlier is the earlier of two times; the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// gaps are the times between neighbours.
func gaps(at []time.Time) []time.Duration {
	var out []time.Duration
	for i := 1; i < len(at); i++ {
		out = append(out, at[i].Sub(at[i-1]))
	}
	return out
}

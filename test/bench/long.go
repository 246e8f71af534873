package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// parts is into how many equal parts a long run is divided.
const parts = 10

// moment is what worker and server used when a run had begun some passes.
type moment struct {
	passes         int
	at             time.Time
	worker, server usage
}

// long measures one run of many passes: time, CPU time and memory in each tenth of it, and in its first and last
// hundred passes.
func (h *env) long(ctx context.Context, out io.Writer, passes int) error {
	def, err := h.define(passes)
	if err != nil {
		return err
	}
	var moments []moment
	_, err = h.worked(ctx, func(ctx context.Context, worker int) error {
		runs, err := h.launch(ctx, def, 1, durable.Disk{})
		if err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- h.await(ctx, runs) }()
		moments, err = h.follow(runs[0].dir.Dir, worker, ended)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, one run of %d passes.\n", h.where(), passes)
	growth(out, moments, passes)
	return nil
}

// follow notes a moment at each pass that begins, until the run ends.
func (h *env) follow(dir rundir.Dir, worker int, ended <-chan error) ([]moment, error) {
	var moments []moment
	note := func(passes int) error {
		m := moment{passes: passes, at: time.Now()}
		var err error
		if m.worker, err = usageOf(worker); err == nil && h.server != 0 {
			m.server, err = usageOf(h.server)
		}
		moments = append(moments, m)
		return err
	}
	begun := passesBegun{journal: dir.Path(layout.EventsFile)}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for seen := 0; ; {
		select {
		case err := <-ended:
			return moments, errors.Join(err, note(seen+1))
		case <-tick.C:
		}
		n, err := begun.count()
		if err != nil {
			return nil, err
		}
		if n > seen {
			seen = n
			if err := note(n); err != nil {
				return nil, err
			}
		}
	}
}

// passesBegun counts the passes in a journal that grows.
type passesBegun struct {
	journal string
	read    int64
	n       int
}

func (b *passesBegun) count() (n int, err error) {
	f, err := os.Open(b.journal)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Seek(b.read, io.SeekStart); err != nil {
		return 0, err
	}
	raw, err := io.ReadAll(f)
	whole := raw[:bytes.LastIndexByte(raw, '\n')+1]
	b.read += int64(len(whole))
	b.n += bytes.Count(whole, []byte(`"kind":"`+run.KindPassStart+`"`))
	return b.n, err
}

// cost is what a pass needs.
type cost struct{ wall, worker, server time.Duration }

func (c cost) cpu() time.Duration { return c.worker + c.server }

// between is what a pass needed between two moments.
func between(a, b moment) cost {
	n := time.Duration(max(b.passes-a.passes, 1))
	return cost{b.at.Sub(a.at) / n, (b.worker.cpu - a.worker.cpu) / n, (b.server.cpu - a.server.cpu) / n}
}

// reached is the first moment at which a run had begun that many passes, or the last one.
func reached(moments []moment, passes int) moment {
	for _, m := range moments {
		if m.passes >= passes {
			return m
		}
	}
	return moments[len(moments)-1]
}

// growth writes what passes need in each tenth of a run, and in its first and last hundred.
func growth(out io.Writer, moments []moment, passes int) {
	fmt.Fprintln(out, "\n| passes so far | a pass | CPU: worker | server | memory: worker | server |\n"+
		"|--:|--:|--:|--:|--:|--:|")
	for i := range parts {
		end := reached(moments, (i+1)*passes/parts)
		c := between(reached(moments, i*passes/parts), end)
		fmt.Fprintf(out, "| %d | %s | %s | %s | %s | %s |\n", end.passes, ms(c.wall), ms(c.worker), ms(c.server),
			mb(end.worker.memory), mb(end.server.memory))
	}
	edge := min(100, passes/2)
	first := between(reached(moments, 1), reached(moments, edge+1))
	last := between(reached(moments, passes-edge), reached(moments, passes))
	fmt.Fprintf(out, "\nThe first and the last %d passes: %s and %s (%.2f); CPU time %s and %s (%.2f).\n", edge,
		ms(first.wall), ms(last.wall), float64(last.wall)/float64(first.wall), ms(first.cpu()), ms(last.cpu()),
		float64(last.cpu())/float64(first.cpu()))
}

// mb writes an amount of memory.
func mb(n uint64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

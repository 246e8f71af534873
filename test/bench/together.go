package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/passbook-run/passbook/run"
)

// each run that starts together with others makes that many passes.
const passesTogether = 3

// together starts many runs, then the worker: with as many calls at once as a worker makes, which wait on the server,
// and with fewer, which wait in the queue of the host. All must end well. If they take turns, the first ends late.
func (h *env) together(ctx context.Context, out io.Writer, n int) error {
	for _, row := range []struct{ name, settings string }{
		{"4 calls of the worker", "{}\n"}, {"2 calls of the account", "at_once: {account: 2}\n"},
	} {
		if err := os.WriteFile(h.empty(), []byte(row.settings), 0o600); err != nil {
			return err
		}
		if err := h.togetherWith(ctx, out, n, row.name); err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
	}
	return nil
}

func (h *env) togetherWith(ctx context.Context, out io.Writer, n int, name string) error {
	def, err := h.small("{role: builder}, {role: builder}, {role: builder}")
	if err != nil {
		return err
	}
	runs, err := h.launchBeside(ctx, def, n, fmt.Sprintf("together-%d-", h.batches))
	if err != nil {
		return err
	}
	begun := time.Now()
	cpu, err := h.worked(ctx, func(ctx context.Context, _ int) error { return h.await(ctx, runs) })
	if err != nil {
		return err
	}
	took := time.Since(begun)
	first, err := firstEnd(runs)
	if err != nil {
		return err
	}
	passes := n * passesTogether
	fmt.Fprintf(out, "- %d runs of %d passes, %s at once: the first ended after %s, the last after %s ", n, passesTogether,
		name, first.Sub(begun).Round(time.Second), took.Round(time.Second))
	fmt.Fprintf(out, "(%s a pass, CPU of the worker with its agents %s)\n", ms(took/time.Duration(passes)),
		ms(cpu/time.Duration(passes)))
	return nil
}

// firstEnd returns when the first run ended its last pass. It refuses a run that did not end well.
func firstEnd(runs []started) (first time.Time, err error) {
	for _, r := range runs {
		m, err := r.dir.Meta()
		if err != nil {
			return first, err
		}
		if m.Status != string(run.Done) {
			return first, fmt.Errorf("run %s is %s", r.id, m.Status)
		}
		if n := m.State.Passes.LastSettled; n != passesTogether {
			return first, fmt.Errorf("run %s has %d passes of %d", r.id, n, passesTogether)
		}
		_, end, err := passTimes(r.dir.Dir)
		if err != nil {
			return first, err
		}
		first = earlier(first, end)
	}
	return first, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

const (
	rest    = time.Minute // for which the waiting runs are observed
	answers = 20          // runs that are answered
)

// waiting measures many runs that wait for an operator: memory, CPU time, a restart of everything, and answers before
// and after it.
func (h *env) waiting(ctx context.Context, out io.Writer, n int) error {
	def, err := h.small(`{role: builder}, {ask: "May it continue?"}`)
	if err != nil {
		return err
	}
	var runs []started
	fmt.Fprintf(out, "%s, %d runs that wait for an operator.\n\n", h.where(), n)
	_, err = h.worked(ctx, func(ctx context.Context, worker int) error {
		begun := time.Now()
		if runs, err = h.launchBeside(ctx, def, n, "waiting-"); err != nil {
			return err
		}
		if err := awaitQuestions(ctx, runs); err != nil {
			return err
		}
		fmt.Fprintf(out, "- all started and waiting: after %s\n", time.Since(begun).Round(time.Millisecond))
		if err := h.rest(ctx, out, worker); err != nil {
			return err
		}
		return h.answer(ctx, out, runs[:min(answers, n)])
	})
	if err != nil {
		return err
	}
	return h.restart(ctx, out, runs[min(answers, n):])
}

// rest writes what server and worker use while the runs wait.
func (h *env) rest(ctx context.Context, out io.Writer, worker int) error {
	names, pids := []string{"worker", "server"}, []int{worker, h.server}
	before := make([]usage, len(pids))
	var err error
	for i, pid := range pids {
		if before[i], err = usageOf(pid); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rest):
	}
	for i, pid := range pids {
		now, err := usageOf(pid)
		if err != nil {
			return err
		}
		used := now.cpu - before[i].cpu
		fmt.Fprintf(out, "- %s: %s; CPU time in %s: %s (%.2f %%)\n", names[i], mb(now.memory), rest, used,
			100*float64(used)/float64(rest))
	}
	return nil
}

// answer answers runs one after another, and writes how long each took to act on it.
func (h *env) answer(ctx context.Context, out io.Writer, runs []started) error {
	var took []time.Duration
	for _, r := range runs {
		begun := time.Now()
		if _, err := h.op.Decide(ctx, r.dir, workflows.Message{Action: run.ActionContinue}); err != nil {
			return fmt.Errorf("answer run %s: %w", r.id, err)
		}
		if err := h.await(ctx, []started{r}); err != nil {
			return err
		}
		took = append(took, time.Since(begun))
	}
	fmt.Fprintf(out, "- from an answer to the end of the run: %s, at most %s (%d runs)\n", ms(median(took)),
		ms(quantile(took, 1)), len(took))
	return nil
}

// restart starts server and worker again, and writes how long it takes until a run acts on an answer.
func (h *env) restart(ctx context.Context, out io.Writer, runs []started) error {
	if len(runs) == 0 {
		return nil
	}
	if _, err := local.StopServer(ctx, h.state(), readyTimeout); err != nil {
		return err
	}
	h.op.Client.Close()
	begun := time.Now()
	if err := h.connect(ctx); err != nil {
		return err
	}
	served := time.Since(begun)
	_, err := h.worked(ctx, func(ctx context.Context, worker int) error {
		if err := h.answer(ctx, io.Discard, runs[:1]); err != nil {
			return err
		}
		fmt.Fprintf(out, "- server and worker started again: the server after %s, an answer acted on after %s\n",
			ms(served), ms(time.Since(begun)))
		return h.answer(ctx, out, runs[1:min(answers, len(runs))])
	})
	return err
}

// launchBeside starts runs, some at the same time.
func (h *env) launchBeside(ctx context.Context, def operations.Definition, n int, name string) ([]started, error) {
	const beside = 8
	runs, errs := make([]started, n), make(chan error, beside)
	next := make(chan int)
	go func() {
		defer close(next)
		for i := range n {
			next <- i
		}
	}()
	for range beside {
		go func() {
			var err error
			for i := range next {
				if err != nil {
					continue
				}
				runs[i], err = h.start(ctx, def, name+fmt.Sprint(i), durable.Disk{})
			}
			errs <- err
		}()
	}
	var err error
	for range beside {
		err = errors.Join(err, <-errs)
	}
	return runs, err
}

// awaitQuestions waits until each run asks.
func awaitQuestions(ctx context.Context, runs []started) error {
	for _, r := range runs {
		for {
			now, err := r.dir.Now()
			if err == nil {
				if _, asks := now.State.Asks(); asks {
					break
				}
			}
			select {
			case <-ctx.Done():
				return errors.Join(ctx.Err(), err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// small writes a pipeline of one stage that changes a page, and reads it.
func (h *env) small(steps string) (operations.Definition, error) {
	h.batches++
	folder := filepath.Join(h.temp, fmt.Sprintf("small-%d", h.batches))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return operations.Definition{}, err
	}
	const file = "pipeline.yaml"
	for name, text := range map[string]string{
		file: fmt.Sprintf(`pipeline: small
agent: {run: [%q], reply: claude-json}
artifact: {file: page.html, seed: seed.html}
roles:
  builder: {prompt: prompt.md, gives: artifact}
stages:
  - name: build
    steps: [%s]
`, h.agent(), steps),
		"prompt.md": "Read the page.\n", "seed.html": "<!DOCTYPE html>\n<html><body></body></html>\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return operations.Definition{}, err
		}
	}
	return operations.Load(os.DirFS(folder), file, filepath.Join(folder, file))
}

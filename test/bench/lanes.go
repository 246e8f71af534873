package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

const (
	lanesAtOnce = 16
	slowItems   = 48 // of the run with one or two workers
	slowAgent   = 2  // seconds that its agent takes
	treeFiles   = 1000
)

// lanes measures what a lane costs in runs of different sizes on the same tree, each lane with one call that changes a
// file and one merge, and how much faster two workers with four calls at once are than one.
func (h *env) lanes(ctx context.Context, out io.Writer, sizes []int) error {
	fmt.Fprintf(out, "%s, %d lanes at once, a tree of %d files.\n\n", h.where(), lanesAtOnce, treeFiles)
	fmt.Fprintln(out, "| lanes | a lane | events | bytes | CPU: worker | server | memory: worker |\n"+
		"|--:|--:|--:|--:|--:|--:|--:|")
	for _, n := range sizes {
		if err := h.lanesOf(ctx, out, n); err != nil {
			return fmt.Errorf("%d lanes: %w", n, err)
		}
	}
	var took [2]time.Duration
	for range h.Reps {
		for i := range took {
			d, err := h.slowLanes(ctx, i+1)
			if err != nil {
				return err
			}
			took[i] += d
		}
	}
	n := time.Duration(h.Reps)
	fmt.Fprintf(out, "\n%d lanes whose agent takes %d s, four calls at once a worker: %s with one worker, %s with two, "+
		"%.2f (means of %d).\n", slowItems, slowAgent, took[0]/n, took[1]/n, float64(took[0])/float64(took[1]), h.Reps)
	return nil
}

// lanesOf measures a run of n lanes.
func (h *env) lanesOf(ctx context.Context, out io.Writer, n int) error {
	def, err := h.migration(n, 0)
	if err != nil {
		return err
	}
	var before, after moment
	var r started
	_, err = h.worked(ctx, func(ctx context.Context, worker int) error {
		if before, err = h.moment(worker); err != nil {
			return err
		}
		runs, err := h.launch(ctx, def, 1, durable.Disk{})
		if err != nil {
			return err
		}
		r = runs[0]
		if err := h.await(ctx, runs); err != nil {
			return err
		}
		after, err = h.moment(worker)
		return err
	})
	if err != nil {
		return err
	}
	m, err := r.dir.Meta()
	if err != nil {
		return err
	}
	if m.Status != string(run.Done) {
		return fmt.Errorf("run %s is %s", r.id, m.Status)
	}
	w, err := h.weigh(ctx, r.id)
	if err != nil {
		return err
	}
	after.passes = before.passes + n
	c := between(before, after)
	fmt.Fprintf(out, "| %d | %s | %.1f | %d | %s | %s | %s |\n", n, ms(c.wall), float64(w.events)/float64(n),
		w.bytes/int64(n), ms(c.worker), ms(c.server), mb(after.worker.memory))
	return nil
}

// moment is what a worker and the server have used until now.
func (h *env) moment(worker int) (m moment, err error) {
	m.at = time.Now()
	if m.worker, err = usageOf(worker); err == nil && h.server != 0 {
		m.server, err = usageOf(h.server)
	}
	return m, err
}

// slowLanes measures a run whose agent takes some seconds, with that many workers.
func (h *env) slowLanes(ctx context.Context, workers int) (took time.Duration, err error) {
	def, err := h.migration(slowItems, slowAgent)
	if err != nil {
		return 0, err
	}
	work := func(ctx context.Context, _ int) error {
		begun := time.Now()
		runs, err := h.launch(ctx, def, 1, durable.Disk{})
		if err != nil {
			return err
		}
		err = h.await(ctx, runs)
		took = time.Since(begun)
		return err
	}
	for range workers - 1 {
		inner := work
		work = func(ctx context.Context, _ int) error {
			_, err := h.worked(ctx, inner)
			return err
		}
	}
	_, err = h.worked(ctx, work)
	return took, err
}

// migration writes a pipeline that changes each of n files in a lane, and a repository with them and others.
func (h *env) migration(n, seconds int) (operations.Definition, error) {
	h.batches++
	folder := filepath.Join(h.temp, fmt.Sprintf("migration-%d", h.batches))
	source := filepath.Join(folder, "source")
	for _, name := range []string{"pages", "others"} {
		if err := os.MkdirAll(filepath.Join(source, name), 0o755); err != nil {
			return operations.Definition{}, err
		}
	}
	texts := map[string]string{
		"work.md":  "Migrate {{item}}.\n",
		"agent.sh": fmt.Sprintf("sleep %d\necho new > \"$PASSBOOK_ITEM\"\necho changed\n", seconds),
		"lanes.yaml": fmt.Sprintf(`pipeline: migration
agent: {run: [sh, %s], reply: text}
workspace: {git: worktree}
roles:
  worker: {prompt: work.md, gives: changes}
stages:
  - name: migrate
    each: {in: 'pages/*.txt', at_once: %d}
    steps: [{role: worker}]
`, filepath.Join(folder, "agent.sh"), lanesAtOnce),
	}
	for i := range max(n, treeFiles) {
		folder := "pages"
		if i >= n {
			folder = "others"
		}
		texts[fmt.Sprintf("source/%s/p%04d.txt", folder, i)] = "old\n"
	}
	var err error
	for name, text := range texts {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"},
		{"-c", "user.name=Bench", "-c", "user.email=bench@localhost", "commit", "-q", "-m", "base"}} {
		if output, e := exec.Command("git", append([]string{"-C", source}, args...)...).CombinedOutput(); e != nil {
			err = errors.Join(err, fmt.Errorf("git %s: %w\n%s", args[0], e, output))
		}
	}
	if err != nil {
		return operations.Definition{}, err
	}
	const file = "lanes.yaml"
	def, err := operations.Load(os.DirFS(folder), file, filepath.Join(folder, file))
	def.WorkOn = source
	return def, err
}

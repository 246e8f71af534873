package pages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// tasks execute operations that take minutes, one at a time for each run. Results are files, so they survive the end of
// the console. A task that ends with its console has a file without a result.
type tasks struct {
	folder string
	now    func() time.Time

	mu      sync.Mutex
	running map[string]context.CancelFunc
	ended   sync.WaitGroup
}

// task is an operation that a user has started.
type task struct {
	Started string               `json:"started"`
	Done    bool                 `json:"done"`
	Result  *operations.Verified `json:"result,omitempty"`
	Problem string               `json:"problem,omitempty"`

	Broken   bool `json:"-"` // the console ended before it
	Outdated bool `json:"-"` // the result is about an earlier tree of the run
}

const (
	taskTime = time.Hour           // in which a task ends
	taskLife = 30 * 24 * time.Hour // for which its result is kept
	lockTime = time.Second         // for another console that only looks
)

func (t *tasks) file(id string) string {
	return filepath.Join(t.folder, layout.Digest([]byte(id))[:32]+".json")
}

// begin executes a function after the request, unless this or another console executes one for the run.
func (t *tasks) begin(
	r *http.Request, id string, f func(context.Context) (any, error), describe func(error) string,
) error {
	if err := (durable.Disk{}).Mkdir(t.folder, 0o700); err != nil {
		return err
	}
	if err := t.forget(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[id] != nil {
		return nil
	}
	wait, stop := context.WithTimeout(r.Context(), lockTime)
	defer stop()
	lock, err := durable.WaitLock(wait, t.file(id)+".lock", durable.Self("gates of a run", t.now()))
	if held := (*durable.ErrHeld)(nil); errors.As(err, &held) {
		return nil
	}
	if err != nil {
		return err
	}
	one := task{Started: run.Time(t.now())}
	if err := t.write(id, one); err != nil {
		return errors.Join(err, lock.Remove())
	}
	ctx, cancel := detached(r.Context(), taskTime)
	if t.running == nil {
		t.running = map[string]context.CancelFunc{}
	}
	t.running[id] = cancel
	t.ended.Go(func() {
		out, err := f(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		if !errors.Is(ctx.Err(), context.Canceled) { // else the console ends
			one.Done = true
			if v, ok := out.(operations.Verified); ok && err == nil {
				one.Result = &v
			}
			if err != nil {
				one.Problem = describe(err)
			}
			err = t.write(id, one)
		}
		delete(t.running, id)
		cancel()
		if errors.Join(err, lock.Remove()) != nil {
			return // the page reports that there is no result; the end of the process releases the lock
		}
	})
	return nil
}

func (t *tasks) write(id string, one task) error {
	raw, err := json.Marshal(one)
	if err != nil {
		return err
	}
	return durable.Disk{}.WriteFile(t.file(id), raw, 0o600)
}

// of returns the last task of a run; nil: none.
func (t *tasks) of(id string) (*task, error) {
	raw, err := os.ReadFile(t.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var one task
	if err == nil {
		err = json.Unmarshal(raw, &one)
	}
	if err != nil {
		return nil, err
	}
	one.Broken = !one.Done && !t.works(id)
	return &one, nil
}

// mark changes when the last task of a run changes; empty: there is none.
func (t *tasks) mark(id string) string {
	one, err := t.of(id)
	if err != nil || one == nil {
		return ""
	}
	return fmt.Sprintf("%s.%t.%t", one.Started, one.Done, one.Broken)
}

// works reports whether this or another console executes a task for a run.
func (t *tasks) works(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[id] != nil {
		return true
	}
	lock, err := durable.TryLock(t.file(id)+".lock", durable.Self("gates of a run", t.now()))
	if err != nil {
		return true // or it cannot be known, as on a full disk
	}
	return lock.Remove() != nil
}

// end ends all tasks and waits for them.
func (t *tasks) end(ctx context.Context) {
	t.mu.Lock()
	for _, cancel := range t.running {
		cancel()
	}
	t.mu.Unlock()
	done := make(chan struct{})
	go func() {
		t.ended.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// forget removes old results.
func (t *tasks) forget() error {
	entries, err := os.ReadDir(t.folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || t.now().Sub(info.ModTime()) < taskLife {
			continue
		}
		if err := os.Remove(filepath.Join(t.folder, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// verification is the last verification of a run that was started here, and whether it is about its present tree.
func (s *site) verification(sub subject) *task {
	one, err := s.tasks.of(sub.Row.RunID)
	if err != nil {
		return &task{Done: true, Problem: s.h.ProblemOf(err).Message}
	}
	if one != nil && one.Result != nil {
		tree := sub.State().Tree
		one.Outdated = tree == nil || tree.Digest != one.Result.Tree
	}
	return one
}

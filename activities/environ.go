package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/environ"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/supervisor"
	"github.com/passbook-run/passbook/work"
)

// ofRun is an input that names its run.
type ofRun interface{ Run() string }

// handed gives an activity the environment that was handed over to its run. Its secrets are known from then on. The worker's own environment counts
// where there is none, which is logged once a run for a call that is host-bound, and where it is not private, which is always logged. An environment
// that cannot be read is an error that another try may get over: nothing is done with other variables, or with secrets that are not known.
func (a *Activities) handed(ctx context.Context, in any) (context.Context, error) {
	id := runOf(ctx, in)
	if a.cfg.StateDir == "" || id == "" {
		return ctx, nil
	}
	e, err := environ.Load(a.cfg.StateDir, id)
	call, isCall := in.(work.PassInput)
	switch {
	case err == nil:
		a.learn(e.Variables)
		return environ.With(ctx, e.Variables), nil
	case errors.Is(err, environ.ErrNotPrivate), errors.Is(err, fs.ErrNotExist) && isCall && !call.Only && strings.HasPrefix(call.Store, "file:"):
		a.warnOnce(ctx, id, err)
	case !errors.Is(err, fs.ErrNotExist):
		return ctx, fmt.Errorf("%w; make the file readable, or remove it and run `starter resume` from a terminal that has the variables", err)
	}
	return ctx, nil
}

func runOf(ctx context.Context, in any) string {
	if named, ok := in.(ofRun); ok {
		return named.Run()
	}
	if activity.IsActivity(ctx) {
		return activity.GetInfo(ctx).WorkflowExecution.ID
	}
	return ""
}

func (a *Activities) warnOnce(ctx context.Context, runID string, why error) {
	a.mu.Lock()
	told := a.warned[runID]
	a.warned[runID] = true
	a.mu.Unlock()
	if told || !activity.IsActivity(ctx) {
		return
	}
	activity.GetLogger(ctx).Warn("the calls of this run get the worker's environment: no other one was handed over; `starter resume` does that", "run", runID, "error", why.Error())
}

// learn hides the secrets of an environment from now on. Passbook's own variables name keys and hold none.
func (a *Activities) learn(variables []string) {
	a.cfg.Learn(slices.DeleteFunc(slices.Clone(variables), passbooks))
}

func passbooks(pair string) bool { return strings.HasPrefix(pair, "PASSBOOK_") }

// LearnAll learns the environments of all runs of this host, before any work is done.
func (a *Activities) LearnAll() error {
	if a.cfg.StateDir == "" {
		return nil
	}
	ids, err := environ.Runs(a.cfg.StateDir)
	for _, id := range ids {
		if e, err := environ.Load(a.cfg.StateDir, id); err == nil { // else its calls do not get it
			a.learn(e.Variables)
		}
	}
	return err
}

// learnLeft learns the environment of a delivery from its scratch directory: whoever reads what an agent left has to know its secrets, also when the run
// was given another environment meanwhile. What was cut off belongs to an agent that was never started.
func (a *Activities) learnLeft(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, supervisor.EnvironFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var variables []string
	if json.Unmarshal(raw, &variables) == nil {
		a.learn(variables)
	}
	return nil
}

// forgetClosed removes the environment of a run when its end is on disk. What fails is done by the next worker.
func (a *Activities) forgetClosed(ctx context.Context, d rundir.Dir, in work.ProjectInput) {
	ended := func(line string) bool { return strings.Contains(line, `"kind":"`+string(run.KindRunEnd)+`"`) }
	if a.cfg.StateDir == "" || !slices.ContainsFunc(in.Lines, ended) {
		return
	}
	if now, err := d.Now(); err == nil && now.State.Status.Closed() {
		if err := ForgetEnvironment(a.cfg.StateDir, a.cfg.Scratch, in.RunID, d, a.cfg.Now()); err != nil {
			activity.GetLogger(ctx).Warn("the environment of a closed run stays until a worker starts", "run", in.RunID, "error", err)
		}
	}
}

// ForgetEnvironment removes the environment of a closed run, and its copies in scratch directories first. Where its definition has messages sent of its
// end, it stays as long as they may be tried; the copies do not.
func ForgetEnvironment(stateDir, scratch, runID string, d rundir.Dir, now time.Time) error {
	plan, err := d.Plan()
	if err != nil {
		return RemoveEnvironment(stateDir, scratch, runID)
	}
	var wait time.Duration
	for _, n := range plan.Notify {
		if slices.Contains(n.On, pipeline.OnEnd) || slices.Contains(n.On, pipeline.OnFailure) {
			wait = max(wait, n.GiveUp)
		}
	}
	if wait == 0 {
		return RemoveEnvironment(stateDir, scratch, runID)
	}
	if err := forgetCopies(scratch, runID); err != nil {
		return err
	}
	return environ.Expire(stateDir, runID, now.Add(wait))
}

// RemoveEnvironment removes the environment of a run with its copies in scratch directories. The environment is last: while it is there, the next
// worker tries again.
func RemoveEnvironment(stateDir, scratch, runID string) error {
	if err := forgetCopies(scratch, runID); err != nil {
		return err
	}
	return environ.Remove(stateDir, runID)
}

// forgetCopies removes the environments left beside the calls of a run. A call whose worker was killed keeps its directory.
func forgetCopies(scratch, runID string) error {
	dirs, err := ScratchOf(scratch, runID)
	if err != nil {
		return fmt.Errorf("remove the copies of the environment of run %s: %w", runID, err)
	}
	var all error
	for _, dir := range dirs {
		copies, err := filepath.Glob(filepath.Join(dir, "*", supervisor.EnvironFile))
		all = errors.Join(all, err)
		for _, path := range copies {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				all = errors.Join(all, fmt.Errorf("remove a copy of the environment of run %s: %w", runID, err))
			}
		}
	}
	return all
}

package activities

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/passbook-run/passbook/work"
)

// environFile is the environment that the agent of a delivery was started with, in its scratch directory: whoever reads what the agent left has to know
// its secrets, also when the run was given another environment meanwhile.
const environFile = "environ.json"

// ofRun is an input that names its run.
type ofRun interface{ Run() string }

// handed gives an activity the environment that was handed over to its run. Its secrets are known from then on. Where there is none, the worker's own
// environment counts; of a call that is host-bound that is logged once a run.
func (a *Activities) handed(ctx context.Context, in any) context.Context {
	id := runOf(ctx, in)
	if a.cfg.StateDir == "" || id == "" {
		return ctx
	}
	e, err := environ.Load(a.cfg.StateDir, id)
	if err != nil {
		call, ok := in.(work.PassInput)
		if ok && !call.Only && strings.HasPrefix(call.Store, "file:") {
			a.warnOnce(ctx, id, err)
		}
		return ctx
	}
	a.learn(e.Variables)
	return environ.With(ctx, e.Variables)
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

// noteEnviron leaves the environment of a delivery beside its prompt, before the agent starts.
func noteEnviron(dir string, variables []string) error {
	raw, err := json.Marshal(variables)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, environFile), raw, 0o600)
}

// learnLeft learns the environment of a delivery from its scratch directory. What was cut off belongs to an agent that was never started.
func (a *Activities) learnLeft(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, environFile))
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
		if err := ForgetEnvironment(a.cfg.StateDir, in.RunID, d, a.cfg.Now()); err != nil {
			activity.GetLogger(ctx).Warn("the environment of a closed run stays until a worker starts", "run", in.RunID, "error", err)
		}
	}
}

// ForgetEnvironment removes the environment of a closed run. Where its definition has messages sent of its end, it stays as long as they may be tried.
func ForgetEnvironment(stateDir, runID string, d rundir.Dir, now time.Time) error {
	plan, err := d.Plan()
	if err != nil {
		return environ.Remove(stateDir, runID)
	}
	var wait time.Duration
	for _, n := range plan.Notify {
		if slices.Contains(n.On, pipeline.OnEnd) || slices.Contains(n.On, pipeline.OnFailure) {
			wait = max(wait, n.GiveUp)
		}
	}
	if wait == 0 {
		return environ.Remove(stateDir, runID)
	}
	return environ.Expire(stateDir, runID, now.Add(wait))
}

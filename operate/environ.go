package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/agent/scripted"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/environ"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/workflows"
)

// HostBound says that every call of a run with this store is made on the host that it was started or resumed on.
func HostBound(storeURL string) bool { return strings.HasPrefix(storeURL, "file:") }

// nothing is what is left to undo where nothing was handed over.
func nothing() error { return nil }

// handOver gives the calls of a run the operator's PATH and the variables that its definition allows. Calls of a run that is not host-bound get the
// environment of the worker that makes them.
func (o Operator) handOver(runID, storeURL, by string, plan pipeline.Plan) (undo func() error, err error) {
	if o.Environ == nil || !HostBound(storeURL) {
		return nothing, nil
	}
	return environ.Save(o.Settings.StateDir, environ.Environment{
		RunID: runID, By: by, At: time.Now().UTC().Truncate(time.Millisecond), Variables: agent.Allowed(o.Environ, VariablesOf(plan)),
	})
}

// handOverTo hands the environment over to the execution that an input is for.
func (o Operator) handOverTo(ctx context.Context, in workflows.Input) (undo func() error, err error) {
	if o.Environ == nil || !HostBound(in.Target.Store) {
		return nothing, nil
	}
	plan, err := storedPlan(ctx, in.Target.Store, in.Start.Plan)
	if err != nil {
		return nil, err
	}
	by := "start"
	if in.Reopen != nil {
		by = "resume"
	}
	return o.handOver(in.Claim.RunID, in.Target.Store, by, plan)
}

// handOverResumed hands the environment over to an open run that is about to be resumed. A run whose directory is not known on this host is not
// bound to it.
func (o Operator) handOverResumed(ctx context.Context, runID string) (undo func() error, err error) {
	if o.Environ == nil {
		return nothing, nil
	}
	dir, err := byID(o.Settings.StateDir, runID)
	if err != nil {
		return nothing, nil //nolint:nilerr // it is another host's
	}
	claim, err := dir.Claim()
	if err != nil || !HostBound(o.storeOf(claim)) {
		return nothing, err
	}
	plan, err := dir.Plan()
	if err != nil { // the directory's copy is missing, or of another version
		start, ferr := dir.First()
		if ferr != nil {
			return nil, errors.Join(err, ferr)
		}
		if plan, err = storedPlan(ctx, o.storeOf(claim), start.Plan); err != nil {
			return nil, err
		}
	}
	return o.handOver(runID, o.storeOf(claim), "resume", plan)
}

func storedPlan(ctx context.Context, storeURL, digest string) (pipeline.Plan, error) {
	var plan pipeline.Plan
	s, err := store.Open(ctx, storeURL)
	if err != nil {
		return plan, err
	}
	defer s.Close()
	if err := s.GetJSON(ctx, store.Digest(digest), &plan); err != nil {
		return plan, fmt.Errorf("read the plan: %w", err)
	}
	return plan, nil
}

// VariablesOf are the names that a plan wants seen beside the usual ones: by its agents, and by who its messages go to.
func VariablesOf(plan pipeline.Plan) []string {
	var names []string
	for _, a := range plan.Agents {
		names = append(names, a.Env...)
		if len(a.Run) > 0 && a.Run[0] == pipeline.Scripted {
			names = append(names, scripted.EnvNames()...)
		}
	}
	for _, n := range plan.Notify {
		names = append(append(names, n.Env...), n.WebhookEnv, n.SecretEnv)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// SweepEnvironments removes the environments of runs that are closed, or whose directories were removed. A directory on a disk that is away is not
// removed.
func SweepEnvironments(settings config.Settings) error {
	ids, err := environ.Runs(settings.StateDir)
	if err != nil {
		return err
	}
	var all error
	for _, id := range ids {
		all = errors.Join(all, sweepEnvironment(settings.StateDir, settings.Scratch(), id))
	}
	return all
}

func sweepEnvironment(stateDir, scratch, runID string) error {
	e, err := environ.Load(stateDir, runID)
	if errors.Is(err, fs.ErrNotExist) { // it has expired
		return activities.RemoveEnvironment(stateDir, scratch, runID)
	}
	dir, err := byID(stateDir, runID)
	if unknown := (*NameError)(nil); errors.As(err, &unknown) {
		return activities.RemoveEnvironment(stateDir, scratch, runID)
	}
	if err != nil {
		return err
	}
	if _, err := dir.Claim(); errors.Is(err, rundir.ErrNoRun) {
		if _, err := os.Stat(filepath.Dir(dir.Root)); err != nil {
			return nil //nolint:nilerr // its disk is away
		}
		return activities.RemoveEnvironment(stateDir, scratch, runID)
	}
	now, err := dir.Now()
	if err != nil || !now.State.Status.Closed() || run.Time(e.At) > now.State.FinishedAt {
		return nil //nolint:nilerr // it is open, about to be resumed, or cannot be read now
	}
	return activities.ForgetEnvironment(stateDir, scratch, runID, dir, time.Now())
}

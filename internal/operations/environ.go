package operations

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

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/agent/scripted"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// HostBound reports whether every call of a run with this store is made on the host where it was started or resumed.
func HostBound(storeURL string) bool { return strings.HasPrefix(storeURL, "file:") }

// nothing undoes nothing.
func nothing() error { return nil }

// handOver passes the operator's PATH and the variables that the definition allows to the calls of a run. Calls of a
// run that is not bound to a host get the environment of their worker.
func (o Operator) handOver(runID, origin, storeURL, by string, plan pipeline.Plan) (undo func() error, err error) {
	if o.Environ == nil || !HostBound(storeURL) {
		return nothing, nil
	}
	variables, err := o.variablesFor(runID, origin)
	if err != nil {
		return nil, err
	}
	return environ.Save(o.Settings.StateDir, environ.Environment{
		RunID: runID, By: by, At: time.Now().UTC().Truncate(time.Millisecond), Variables: agent.AllowedEnv(variables,
			VariablesOf(plan)),
	})
}

// variablesFor returns the environment for a run: the operator's, or with Inherit the recorded one of the run, or else
// of the run that it was made of.
func (o Operator) variablesFor(runID, origin string) ([]string, error) {
	if !o.Inherit {
		return o.Environ, nil
	}
	for _, id := range []string{runID, origin} {
		if id == "" {
			continue
		}
		e, err := environ.Load(o.Settings.StateDir, id)
		if err == nil {
			return e.Variables, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return o.Environ, nil
}

// handOverTo passes the environment to the execution of an input.
func (o Operator) handOverTo(ctx context.Context, in contract.Input) (undo func() error, err error) {
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
	origin, _ := in.Start.Origin()
	return o.handOver(in.Claim.RunID, origin, in.Target.Store, by, plan)
}

// handOverResumed passes the environment to an open run that is about to be resumed. A run without a known directory
// on this host is not bound to it.
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
		now, nerr := dir.Now()
		if nerr != nil {
			return nil, errors.Join(err, nerr)
		}
		if plan, err = storedPlan(ctx, o.storeOf(claim), now.State.PlanInForce(start).Plan); err != nil {
			return nil, err
		}
	}
	return o.handOver(runID, "", o.storeOf(claim), "resume", plan)
}

func storedPlan(ctx context.Context, storeURL, digest string) (pipeline.Plan, error) {
	var plan pipeline.Plan
	s, err := OpenStore(ctx, storeURL)
	if err != nil {
		return plan, err
	}
	if err := s.GetJSON(ctx, store.Digest(digest), &plan); err != nil {
		return plan, fmt.Errorf("read the plan: %w", err)
	}
	return plan, nil
}

// VariablesOf lists the variables that a plan needs besides the usual ones, for its agents and its receivers.
func VariablesOf(plan pipeline.Plan) []string {
	var names []string
	for _, a := range plan.Agents {
		names = append(names, a.Env...)
		if len(a.Run) > 0 && a.Run[0] == pipeline.Scripted {
			names = append(names, scripted.EnvNames()...)
		}
	}
	names = append(names, plan.CommandEnv()...)
	for _, n := range plan.Notify {
		names = append(append(names, n.Env...), n.WebhookEnv, n.SecretEnv)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// SweepEnvironments removes the environments of runs that are closed or whose directories were removed. If the disk
// of a directory is missing, its environment stays.
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
		return calls.RemoveEnvironment(stateDir, scratch, runID)
	}
	dir, err := byID(stateDir, runID)
	if unknown := (*NameError)(nil); errors.As(err, &unknown) {
		return calls.RemoveEnvironment(stateDir, scratch, runID)
	}
	if err != nil {
		return err
	}
	if _, err := dir.Claim(); errors.Is(err, rundir.ErrNoRun) {
		if _, err := os.Stat(filepath.Dir(dir.Root)); err != nil {
			return nil //nolint:nilerr // its disk is missing
		}
		return calls.RemoveEnvironment(stateDir, scratch, runID)
	}
	now, err := dir.Now()
	if err != nil || !now.State.Status.Closed() || run.Time(e.At) > now.State.FinishedAt {
		return nil //nolint:nilerr // it is open, about to be resumed, or cannot be read now
	}
	return calls.ForgetEnvironment(stateDir, scratch, runID, dir, time.Now())
}

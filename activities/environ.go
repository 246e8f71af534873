package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/secrets"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

type runInput interface{ Run() string }

// withRunEnvironment returns a context with the environment of the run and learns its secrets. Without one, or if
// it is not private, the worker's own is used and a warning logged (once per run, for host-bound calls). An
// unreadable environment is an error that is retried: nothing runs with other variables or unknown secrets.
func (a *Activities) withRunEnvironment(ctx context.Context, in any) (context.Context, error) {
	id := run.RootOf(runIDOf(ctx, in))
	if a.cfg.StateDir == "" || id == "" {
		return ctx, nil
	}
	e, err := environ.Load(a.cfg.StateDir, id)
	call, isCall := callOf(in)
	switch {
	case err == nil:
		a.learnSecrets(e.Variables)
		return environ.WithVariables(ctx, e.Variables), nil
	case errors.Is(err, environ.ErrNotPrivate), errors.Is(err, fs.ErrNotExist) && isCall && !call.RecordedOnly &&
		strings.HasPrefix(call.Store, "file:"):
		a.warnOnce(ctx, id, err)
	case !errors.Is(err, fs.ErrNotExist):
		return ctx, fmt.Errorf(
			"%w; make the file readable, or remove it and run \"starter resume %s\" in a terminal with the variables",
			err, shell.Quote(id),
		)
	}
	return ctx, nil
}

// callOf returns the call of an input, if it has one.
func callOf(in any) (call contract.PassInput, ok bool) {
	if turn, both := in.(contract.TurnInput); both {
		return turn.Call, true
	}
	call, ok = in.(contract.PassInput)
	return call, ok
}

func runIDOf(ctx context.Context, in any) string {
	if named, ok := in.(runInput); ok {
		return named.Run()
	}
	if activity.IsActivity(ctx) {
		return activity.GetInfo(ctx).WorkflowExecution.ID
	}
	return ""
}

func (a *Activities) warnOnce(ctx context.Context, runID string, why error) {
	a.mu.Lock()
	reported := a.warned[runID]
	a.warned[runID] = true
	a.mu.Unlock()
	if reported || !activity.IsActivity(ctx) {
		return
	}
	activity.GetLogger(ctx).Warn(
		"calls of this run use the worker's environment: the run has none; run \"starter resume "+
			shell.Quote(runID)+"\" to set it",
		"error", why.Error(),
	)
}

// learnSecrets learns the secrets of an environment. Passbook's own variables contain names of keys and no secrets.
func (a *Activities) learnSecrets(variables []string) {
	a.cfg.LearnSecrets(slices.DeleteFunc(slices.Clone(variables), secrets.Own))
}

// LearnAllSecrets learns the environments of all runs of this host before any work.
func (a *Activities) LearnAllSecrets() error {
	if a.cfg.StateDir == "" {
		return nil
	}
	ids, err := environ.Runs(a.cfg.StateDir)
	for _, id := range ids {
		if e, err := environ.Load(a.cfg.StateDir, id); err == nil { // else its calls do not use it
			a.learnSecrets(e.Variables)
		}
	}
	return err
}

// learnDeliverySecrets learns the environment of a delivery from its scratch directory: the run may have another
// one by now. A truncated file belongs to an agent that never started.
func (a *Activities) learnDeliverySecrets(dir string) error {
	const limit = 8 << 20
	raw, err := disk.ReadFile(filepath.Join(dir, supervisor.EnvironFile), limit)
	var other *disk.KindError
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &other) {
		return nil
	}
	if err != nil {
		return err
	}
	var variables []string
	if json.Unmarshal(raw, &variables) == nil {
		a.learnSecrets(variables)
	}
	return nil
}

// forgetClosedRun removes the environment of a closed run. If it fails, the next worker does it.
func (a *Activities) forgetClosedRun(ctx context.Context, d rundir.Dir, in contract.ProjectInput) {
	ended := func(line string) bool { return strings.Contains(line, `"kind":"`+string(run.KindRunEnd)+`"`) }
	if a.cfg.StateDir == "" || !slices.ContainsFunc(in.Lines, ended) {
		return
	}
	if now, err := d.Now(); err == nil && now.State.Status.Closed() {
		if err := calls.ForgetEnvironment(a.cfg.StateDir, a.cfg.Scratch, in.RunID, d, a.cfg.Now()); err != nil {
			activity.GetLogger(ctx).Warn("remove the environment of a closed run; the next worker retries", "run",
				in.RunID,
				"error", err)
		}
	}
}

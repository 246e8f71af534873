package operations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/internal/projector"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/grants"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/internal/repo"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

// occurrencesOfATime is the maximum number of directories for one time of a schedule, which can be backfilled
// repeatedly.
const occurrencesOfATime = 100

// StartDue starts the run of an occurrence as `starter run` on this host does, in a new directory. A retry finds what
// the first attempt started. A refusal has the type [contract.ErrNotStarted]; any other error may be transient.
func (o Operator) StartDue(ctx context.Context, due contract.Occurrence) (contract.ScheduledRun, error) {
	of := run.Scheduled{Name: due.Name, At: due.At, Execution: due.Execution}
	dir, err := occurrenceDir(due.Root, of)
	if err != nil {
		return contract.ScheduledRun{}, notStarted(due, err)
	}
	if claim, err := dir.Claim(); err == nil {
		if now, err := dir.Now(); err == nil && now.Tail.Seq > 0 {
			return o.scheduledRun(claim.RunID, dir.Root)
		}
	}
	o.Settings.Store = due.Store
	if o.Environ, err = o.environOf(due); err != nil {
		return contract.ScheduledRun{}, notStarted(due, err)
	}
	def, err := o.definitionOf(due)
	if err != nil {
		return contract.ScheduledRun{}, notStarted(due, err)
	}
	def.Schedule = of
	st, err := o.Start(ctx, def, dir)
	if err != nil {
		return contract.ScheduledRun{}, notStarted(due, err)
	}
	return o.scheduledRun(st.RunID, st.Dir.Root)
}

func (o Operator) scheduledRun(id, dir string) (contract.ScheduledRun, error) {
	out := contract.ScheduledRun{RunID: id, Directory: dir}
	key, err := grants.Load(o.Settings)
	if err == nil {
		out.Grant = key.Sign(out.Permission())
	}
	return out, err
}

// occurrenceDir returns the directory of an occurrence: the one that it has claimed, or the first free one of its
// time.
func occurrenceDir(root string, of run.Scheduled) (projector.Dir, error) {
	at, err := time.Parse(run.TimeFormat, of.At)
	if err != nil {
		return projector.Dir{}, err
	}
	name := filepath.Join(root, of.Name+"-"+at.UTC().Format("20060102-150405"))
	var first error
	for n := 1; n <= occurrencesOfATime; n++ {
		d := projector.At(name)
		if n > 1 {
			d = projector.At(fmt.Sprintf("%s-%d", name, n))
		}
		claim, err := d.Claim()
		if err == nil && claim.Schedule == of {
			return d, nil
		}
		if errors.Is(err, rundir.ErrNoRun) {
			if err = projector.Usable(d.Dir); err == nil {
				return d, nil
			}
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = fmt.Errorf("%s and %d more directories of this time are taken: move them away", name,
			occurrencesOfATime-1)
	}
	return projector.Dir{}, first
}

func (o Operator) definitionOf(due contract.Occurrence) (Definition, error) {
	def, err := LoadFile(due.Config, price.With(o.Settings.Prices)...)
	// problems contain the file name
	if problems := (pipeline.Problems)(nil); err != nil && !errors.As(err, &problems) {
		return def, fmt.Errorf("definition %s: %w", due.Config, err)
	}
	if err != nil {
		return def, err
	}
	return def, def.Ask(due.Task, due.Source, due.Dirty)
}

// environOf returns the environment of the operator who last created or unpaused the schedule. Runs that are not
// bound to this host have none.
func (o Operator) environOf(due contract.Occurrence) ([]string, error) {
	if !HostBound(due.Store) {
		return nil, nil
	}
	e, err := environ.Load(schedulesDir(o.Settings.StateDir), due.Name)
	if err != nil {
		return nil, fmt.Errorf("%w; run: starter schedule unpause %s", err, shell.Quote(due.Name))
	}
	if o.Redact != nil {
		o.Redact.Learn(e.Variables)
	}
	return e.Variables, nil
}

// schedulesDir is the folder for the environments of schedules on this host.
func schedulesDir(stateDir string) string { return filepath.Join(stateDir, "schedules") }

// handOverSchedule saves the operator's environment for the runs of a schedule.
func (o Operator) handOverSchedule(name, by string, plan *pipeline.Plan) (undo func() error, err error) {
	return environ.Save(schedulesDir(o.Settings.StateDir), environ.Environment{
		RunID: name, By: by, At: time.Now().UTC().Truncate(time.Millisecond), Variables: agent.AllowedEnv(o.Environ,
			VariablesOf(*plan)),
	})
}

// notStarted marks errors that a retry cannot fix: the operator has to act.
func notStarted(due contract.Occurrence, err error) error {
	err = fmt.Errorf("schedule %s, due at %s: %w", due.Name, due.At, err)
	if !refusedStart(err) {
		return err
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrNotStarted, err)
}

func refusedStart(err error) bool {
	var problems pipeline.Problems
	var policy *PolicyError
	var source *SourceError
	var target *projector.TargetError
	var path *fs.PathError
	switch {
	case errors.As(err, &problems), errors.As(err, &policy), errors.As(err, &source), errors.As(err,
		&target), errors.Is(err, environ.ErrNotPrivate), errors.Is(err, repo.ErrNotOwned):
		return true
	case errors.As(err, &path): // the definition, one of its files, or the environment is missing
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
	}
	return errors.Is(err, ErrNoWorkspace)
}

// AwaitEnd waits until a run has no open execution. A run that Temporal no longer has ended without a status.
func (o Operator) AwaitEnd(ctx context.Context, runID string) (contract.RunEnd, error) {
	for {
		var res workflows.Result
		err := o.Client.GetWorkflow(ctx, runID, "").Get(ctx, &res)
		if ctx.Err() != nil {
			return contract.RunEnd{}, context.Cause(ctx)
		}
		var missing *serviceerror.NotFound
		var ended *temporal.WorkflowExecutionError
		switch {
		case errors.As(err, &missing):
			return contract.RunEnd{Reason: "Temporal no longer has it"}, nil
		case err != nil && !errors.As(err, &ended):
			return contract.RunEnd{}, fmt.Errorf("wait for the end of run %s: %w", runID, err)
		}
		if open, err := o.Open(ctx, runID); err != nil {
			return contract.RunEnd{}, err
		} else if open { // it was reset or resumed meanwhile
			continue
		}
		return endOf(res, err), nil
	}
}

func endOf(res workflows.Result, err error) contract.RunEnd {
	var canceled *temporal.CanceledError
	switch {
	case err == nil:
		return contract.RunEnd{Status: string(res.Status), Reason: res.Reason}
	case errors.As(err, &canceled):
		return contract.RunEnd{Status: string(run.Cancelled)}
	}
	return contract.RunEnd{Reason: err.Error()}
}

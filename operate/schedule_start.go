package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/environ"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/repo"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/work"
	"github.com/passbook-run/passbook/workflows"
)

// occurrencesOfATime is how many directories there are for one time of a schedule: it can be backfilled again and again.
const occurrencesOfATime = 100

// StartDue starts the run of an occurrence: as `starter run` on this host would, in a directory of its own. Another attempt of the same occurrence finds what
// the first one started. What is refused is an error of type [work.ErrNotStarted]; any other error may pass.
func (o Operator) StartDue(ctx context.Context, due work.Due) (work.ScheduledRun, error) {
	of := run.Scheduled{Name: due.Name, At: due.At, Execution: due.Execution}
	dir, err := occurrenceDir(due.Root, of)
	if err != nil {
		return work.ScheduledRun{}, notStarted(due, err)
	}
	if claim, err := dir.Claim(); err == nil {
		if now, err := dir.Now(); err == nil && now.Tail.Seq > 0 {
			return work.ScheduledRun{RunID: claim.RunID, Directory: dir.Root}, nil
		}
	}
	o.Settings.Store = due.Store
	if o.Environ, err = o.environOf(due); err != nil {
		return work.ScheduledRun{}, notStarted(due, err)
	}
	def, err := o.definitionOf(due)
	if err != nil {
		return work.ScheduledRun{}, notStarted(due, err)
	}
	def.Schedule = of
	st, err := o.Start(ctx, def, dir)
	if err != nil {
		return work.ScheduledRun{}, notStarted(due, err)
	}
	return work.ScheduledRun{RunID: st.RunID, Directory: st.Dir.Root}, nil
}

// occurrenceDir gives the directory of an occurrence: the one that it has claimed, or the first free one of its time.
func occurrenceDir(root string, of run.Scheduled) (rundir.Dir, error) {
	at, err := time.Parse(run.TimeFormat, of.At)
	if err != nil {
		return rundir.Dir{}, err
	}
	name := filepath.Join(root, of.Name+"-"+at.UTC().Format("20060102-150405"))
	var first error
	for n := 1; n <= occurrencesOfATime; n++ {
		d := rundir.At(name)
		if n > 1 {
			d = rundir.At(fmt.Sprintf("%s-%d", name, n))
		}
		claim, err := d.Claim()
		if err == nil && claim.Schedule == of {
			return d, nil
		}
		if errors.Is(err, rundir.ErrNoRun) {
			if err = d.Usable(); err == nil {
				return d, nil
			}
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = fmt.Errorf("%s and %d more directories of this time are taken: move them away", name, occurrencesOfATime-1)
	}
	return rundir.Dir{}, first
}

func (o Operator) definitionOf(due work.Due) (Definition, error) {
	def, err := LoadFile(due.Config)
	if problems := (pipeline.Problems)(nil); err != nil && !errors.As(err, &problems) { // problems name the file themselves
		return def, fmt.Errorf("definition %s: %w", due.Config, err)
	}
	if err != nil {
		return def, err
	}
	return def, def.Ask(due.Task, due.Source, due.Dirty)
}

// environOf is what the operator who created the schedule, or unpaused it last, has handed over. Runs that are not bound to this host do without.
func (o Operator) environOf(due work.Due) ([]string, error) {
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

// schedulesDir is where this host keeps the environments of schedules.
func schedulesDir(stateDir string) string { return filepath.Join(stateDir, "schedules") }

// handOverSchedule keeps the operator's environment for the runs of a schedule.
func (o Operator) handOverSchedule(name, by string, plan *pipeline.Plan) (undo func() error, err error) {
	return environ.Save(schedulesDir(o.Settings.StateDir), environ.Environment{
		RunID: name, By: by, At: time.Now().UTC().Truncate(time.Millisecond), Variables: agent.Allowed(o.Environ, VariablesOf(*plan)),
	})
}

// notStarted marks what another attempt cannot help: the operator has to do something.
func notStarted(due work.Due, err error) error {
	err = fmt.Errorf("schedule %s, due at %s: %w", due.Name, due.At, err)
	if !refusedStart(err) {
		return err
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), work.ErrNotStarted, err)
}

func refusedStart(err error) bool {
	var problems pipeline.Problems
	var policy *PolicyError
	var source *SourceError
	var target *rundir.TargetError
	var path *fs.PathError
	switch {
	case errors.As(err, &problems), errors.As(err, &policy), errors.As(err, &source), errors.As(err, &target), errors.Is(err, environ.ErrNotPrivate), errors.Is(err, repo.ErrNotOurs):
		return true
	case errors.As(err, &path): // the definition, a file that it names, or the environment is gone
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
	}
	return errors.Is(err, ErrNoWorkspace)
}

// AwaitEnd waits until a run has no open execution. A run that is gone has ended without a status.
func (o Operator) AwaitEnd(ctx context.Context, runID string) (work.RunEnd, error) {
	for {
		var res workflows.Result
		err := o.Client.GetWorkflow(ctx, runID, "").Get(ctx, &res)
		if ctx.Err() != nil {
			return work.RunEnd{}, context.Cause(ctx)
		}
		var missing *serviceerror.NotFound
		var ended *temporal.WorkflowExecutionError
		switch {
		case errors.As(err, &missing):
			return work.RunEnd{Reason: "Temporal does not have it any more"}, nil
		case err != nil && !errors.As(err, &ended):
			return work.RunEnd{}, fmt.Errorf("wait for the end of run %s: %w", runID, err)
		}
		if open, err := o.Open(ctx, runID); err != nil {
			return work.RunEnd{}, err
		} else if open { // it was reset or resumed meanwhile
			continue
		}
		return endOf(res, err), nil
	}
}

func endOf(res workflows.Result, err error) work.RunEnd {
	var canceled *temporal.CanceledError
	switch {
	case err == nil:
		return work.RunEnd{Status: string(res.Status), Reason: res.Reason}
	case errors.As(err, &canceled):
		return work.RunEnd{Status: string(run.Cancelled)}
	}
	return work.RunEnd{Reason: err.Error()}
}

package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/volume"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Open opens the directory for an execution: it must be this run's.
func (a *Activities) Open(ctx context.Context, in contract.OpenInput) (contract.OpenResult, error) {
	defer a.keepAlive(ctx)()
	if _, err := a.store(ctx, in.Store); err != nil { // before anything is written
		return contract.OpenResult{}, err
	}
	d := a.open(in.Dir)
	if err := d.Take(in.Claim); err != nil {
		return contract.OpenResult{}, nonRetryable(err)
	}
	if in.Tail.Seq == 0 {
		tail, err := d.Tail()
		return contract.OpenResult{Tail: tail, Host: a.cfg.Host, Task: in.Task}, err
	}
	owner := rundir.Owner{
		Epoch: in.Epoch, RunID: in.RunID, Execution: in.Execution, Host: a.cfg.Host, Cluster: in.Cluster,
		Embedded: in.Embedded, Address: in.Address, OpenedAt: run.Time(a.cfg.Now()),
	}
	err := rundir.TakeOver(ctx, d, owner, in.Tail)
	return contract.OpenResult{Tail: in.Tail, Host: a.cfg.Host}, nonRetryable(err)
}

// keepAlive sends heartbeats during work on the directory, so that a lost worker is noticed early.
func (a *Activities) keepAlive(ctx context.Context) (stop func()) {
	return HeartbeatEvery(ctx, activity.GetInfo(ctx).HeartbeatTimeout.Milliseconds(),
		func() any { return contract.Heartbeat{Host: a.cfg.Host} })
}

// nonRetryable marks errors that a retry cannot fix.
func nonRetryable(err error) error {
	var c *rundir.ClaimedError
	var stale *rundir.StaleError
	var other *rundir.OtherEventsError
	var damaged *rundir.DamagedError
	switch {
	case errors.As(err, &c):
		return temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrClaimed, err)
	case errors.As(err, &other), errors.As(err, &stale):
		return temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrNewer, err)
	case errors.As(err, &damaged):
		return temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrDamaged, err)
	}
	return err
}

// Project appends a batch of the journal to the directory.
func (a *Activities) Project(ctx context.Context, in contract.ProjectInput) (contract.ProjectResult, error) {
	met := lastError(ctx)
	stop := HeartbeatEvery(ctx, activity.GetInfo(ctx).HeartbeatTimeout.Milliseconds(),
		func() any { return contract.Heartbeat{Host: a.cfg.Host, LastError: met} })
	res, err := a.project(ctx, in)
	err = volume.Explain(err)
	stop()
	if err != nil {
		if ctx.Err() == nil {
			met = classifyError(err)
			a.redactAll(&met.Message)
		}
		activity.RecordHeartbeat(ctx, contract.Heartbeat{Host: a.cfg.Host, LastError: met})
		return res, err
	}
	if met != nil {
		met.Attempt = int(activity.GetInfo(ctx).Attempt)
		res.Recovered = append(res.Recovered, *met)
	}
	return res, nil
}

// lastError returns the error of an earlier attempt from its heartbeats, which other workers see too.
func lastError(ctx context.Context) *contract.RecoveredError {
	var beat contract.Heartbeat
	if !activity.HasHeartbeatDetails(ctx) || activity.GetHeartbeatDetails(ctx, &beat) != nil {
		return nil
	}
	return beat.LastError
}

// classifyError classifies an error of work on the directory.
func classifyError(err error) *contract.RecoveredError {
	t := &contract.RecoveredError{Category: run.CategoryUnknown, Message: err.Error()}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		t.Category = run.CategoryFileIO
	}
	return t
}

func (a *Activities) project(ctx context.Context, in contract.ProjectInput) (contract.ProjectResult, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.ProjectResult{}, err
	}
	d := a.open(in.Dir)
	if err := rundir.MayContinue(d, in.RunID); err != nil {
		return contract.ProjectResult{}, nonRetryable(err)
	}
	batch := rundir.Batch{
		Epoch: in.Epoch, First: in.First, Prev: in.Prev, Lines: in.Lines, Head: in.Head, Verified: in.Verified,
		Truth: a.journalSource(blobs.Of(s), in.Head),
	}
	p, err := d.Project(ctx, blobs.Of(s), batch)
	if err == nil && p.Outcome == run.ProjectionWritten && len(in.Lines) > 0 {
		a.forgetClosedRun(ctx, d, in)
		a.cfg.Projected(Projection{Dir: in.Dir, RunID: in.RunID, Pipeline: p.Pipeline, First: in.First,
			Lines: in.Lines, Added: p.Added})
	}
	res := contract.ProjectResult{Outcome: p.Outcome, Tail: p.Tail, Damage: p.Damage}
	for _, what := range p.Healed {
		res.Recovered = append(res.Recovered, contract.RecoveredError{Category: run.CategoryStateCorruption,
			Message: what})
	}
	for _, e := range p.Edits {
		res.Recovered = append(res.Recovered, replacedEdit(e))
	}
	return res, err
}

// replacedEdit words an edit of the artifact as requirement 002 §3.1 does.
func replacedEdit(e rundir.Edit) contract.RecoveredError {
	what := "modified outside orchestrator. The pass replaces it."
	if e.Restored {
		what = "partially modified. Restoring from backup."
	}
	return contract.RecoveredError{Category: run.CategoryStateCorruption, Kept: e.Kept,
		Message: fmt.Sprintf("Artifact %s Your version: %s", what, e.Kept)}
}

// ArchiveSegment archives a part of the journal.
func (a *Activities) ArchiveSegment(ctx context.Context,
	in contract.ArchiveSegmentInput) (contract.ArchiveSegmentResult, error) {
	defer a.keepAlive(ctx)()
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.ArchiveSegmentResult{}, err
	}
	done, err := a.open(in.Dir).Seal(ctx, blobs.Of(s), rundir.Sealing{
		RunID: in.RunID, Head: in.Head, First: in.First, Tail: in.Tail, Truth: a.journalSource(blobs.Of(s), in.Head),
	})
	if errors.Is(err, rundir.ErrShorter) {
		err = temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrDirectoryLost, err)
	}
	return contract.ArchiveSegmentResult{Head: done.Head, Last: done.Last, Damage: done.Damage}, err
}

// journalSource returns the journal as the store and the workflow's history have it.
func (a *Activities) journalSource(s blobs.Store, head string) rundir.Truth {
	return func(ctx context.Context) ([]string, error) {
		exec := activity.GetInfo(ctx).WorkflowExecution
		src, err := a.history.Source(ctx, exec.ID, exec.RunID)
		if err != nil {
			return nil, err
		}
		src.Head = head
		return src.Lines(ctx, s)
	}
}

// Rebuild rebuilds a lost or damaged directory from segments and the workflow's history.
func (a *Activities) Rebuild(ctx context.Context, in contract.RebuildInput) (contract.RebuildResult, error) {
	defer a.keepAlive(ctx)()
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.RebuildResult{}, err
	}
	exec := activity.GetInfo(ctx).WorkflowExecution
	src, err := a.history.Source(ctx, exec.ID, exec.RunID)
	if err != nil {
		return contract.RebuildResult{}, err
	}
	src.Claim, src.Head = in.Claim, in.Head
	if owner, err := a.open(in.Dir).Owner(); err != nil || owner.Epoch > in.Epoch {
		return contract.RebuildResult{}, cmp.Or(err, nonRetryable(&rundir.StaleError{Dir: in.Dir,
			Why: fmt.Sprintf("it is of epoch %d", owner.Epoch)}))
	}
	r, err := a.open(in.Dir).Restore(ctx, blobs.Of(s), src)
	return contract.RebuildResult{Tail: r.Tail, Damage: r.Damage}, nonRetryable(err)
}

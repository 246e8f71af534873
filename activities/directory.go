package activities

import (
	"context"
	"errors"
	"syscall"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/volume"
	"github.com/passbook-run/passbook/work"
)

// Open looks at the directory before an execution writes to it: it must be this run's.
func (a *Activities) Open(ctx context.Context, in work.OpenInput) (work.OpenResult, error) {
	defer a.alive(ctx)()
	if _, err := a.store(ctx, in.Store); err != nil { // before anything is written
		return work.OpenResult{}, err
	}
	d := a.cfg.Open(in.Dir)
	if err := d.Take(in.Claim); err != nil {
		return work.OpenResult{}, foreign(err)
	}
	if in.Tail.Seq == 0 {
		tail, err := d.Tail()
		return work.OpenResult{Tail: tail, Host: a.cfg.Host}, err
	}
	owner := rundir.Owner{
		Epoch: in.Epoch, RunID: in.RunID, Execution: in.Execution, Host: a.cfg.Host, Cluster: in.Cluster, Embedded: in.Embedded, Address: in.Address, OpenedAt: run.Time(a.cfg.Now()),
	}
	return work.OpenResult{Tail: in.Tail, Host: a.cfg.Host}, foreign(d.TakeOver(ctx, owner, in.Tail))
}

// alive reports that work on the directory goes on, so that a worker that dies in the middle of it is noticed as soon as one that dies in a call.
func (a *Activities) alive(ctx context.Context) (stop func()) {
	return BeatEvery(ctx, activity.GetInfo(ctx).HeartbeatTimeout.Milliseconds(), func() any { return work.Heartbeat{Host: a.cfg.Host} })
}

// foreign marks an error that trying again cannot help.
func foreign(err error) error {
	var c *rundir.ClaimedError
	var stale *rundir.StaleError
	var other *rundir.OtherEventsError
	var damaged *rundir.DamagedError
	switch {
	case errors.As(err, &c):
		return temporal.NewNonRetryableApplicationError(err.Error(), work.ErrClaimed, err)
	case errors.As(err, &other):
		return temporal.NewNonRetryableApplicationError(err.Error(), work.ErrOtherEvents, err)
	case errors.As(err, &stale), errors.As(err, &damaged):
		return temporal.NewNonRetryableApplicationError(err.Error(), work.ErrStale, err)
	}
	return err
}

// Project appends a piece of the journal to the directory.
func (a *Activities) Project(ctx context.Context, in work.ProjectInput) (work.ProjectResult, error) {
	met := lastTrouble(ctx)
	stop := BeatEvery(ctx, activity.GetInfo(ctx).HeartbeatTimeout.Milliseconds(), func() any { return work.Heartbeat{Host: a.cfg.Host, Trouble: met} })
	res, err := a.project(ctx, in)
	err = volume.Explain(err)
	stop()
	if err != nil {
		if ctx.Err() == nil {
			met = troubleOf(err)
			a.hideAll(&met.Message)
		}
		activity.RecordHeartbeat(ctx, work.Heartbeat{Host: a.cfg.Host, Trouble: met})
		return res, err
	}
	if met != nil {
		met.Attempt = int(activity.GetInfo(ctx).Attempt)
		res.Troubles = append(res.Troubles, *met)
	}
	return res, nil
}

// lastTrouble is what an earlier attempt of this activity failed with. It travels in the heartbeats, so another worker knows it too.
func lastTrouble(ctx context.Context) *work.Trouble {
	var beat work.Heartbeat
	if !activity.HasHeartbeatDetails(ctx) || activity.GetHeartbeatDetails(ctx, &beat) != nil {
		return nil
	}
	return beat.Trouble
}

// troubleOf classifies what directory work failed with.
func troubleOf(err error) *work.Trouble {
	t := &work.Trouble{Category: string(agent.Unknown), Message: err.Error()}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		t.Category = string(agent.FileIO)
	}
	return t
}

func (a *Activities) project(ctx context.Context, in work.ProjectInput) (work.ProjectResult, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return work.ProjectResult{}, err
	}
	d := a.cfg.Open(in.Dir)
	if err := d.MayContinue(in.RunID); err != nil {
		return work.ProjectResult{}, foreign(err)
	}
	if in.Look {
		return lookAtEnd(ctx, d, blobs{s}, in)
	}
	batch := rundir.Batch{
		Epoch: in.Epoch, First: in.First, Prev: in.Prev, Lines: in.Lines, Head: in.Head, Verified: in.Verified, Truth: a.truth(blobs{s}, in.Head),
	}
	p, err := d.Project(ctx, blobs{s}, batch)
	if err == nil && p.Outcome == rundir.Written {
		a.forgetClosed(ctx, d, in)
	}
	res := work.ProjectResult{Outcome: p.Outcome, Tail: p.Tail, Damage: p.Damage, End: endOf(p.End)}
	for _, what := range p.Healed {
		res.Troubles = append(res.Troubles, work.Trouble{Category: string(agent.StateCorruption), Message: what})
	}
	return res, err
}

// Seal puts a piece of the journal into the store.
func (a *Activities) Seal(ctx context.Context, in work.SealInput) (work.SealResult, error) {
	defer a.alive(ctx)()
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return work.SealResult{}, err
	}
	done, err := a.cfg.Open(in.Dir).Seal(ctx, blobs{s}, rundir.Sealing{
		RunID: in.RunID, Head: in.Head, First: in.First, Tail: in.Tail, Truth: a.truth(blobs{s}, in.Head),
	})
	if errors.Is(err, rundir.ErrShorter) {
		err = temporal.NewNonRetryableApplicationError(err.Error(), work.ErrShorter, err)
	}
	return work.SealResult{Head: done.Head, Last: done.Last, Damage: done.Damage}, err
}

// truth gives the journal as the store and this workflow's own history hold it.
func (a *Activities) truth(s blobs, head string) rundir.Truth {
	return func(ctx context.Context) ([]string, error) {
		exec := activity.GetInfo(ctx).WorkflowExecution
		src, err := a.cfg.History.Source(ctx, exec.ID, exec.RunID)
		if err != nil {
			return nil, err
		}
		src.Head = head
		return src.Lines(ctx, s)
	}
}

// Rebuild writes a lost or damaged directory again, from segments and from this workflow's own history.
func (a *Activities) Rebuild(ctx context.Context, in work.RebuildInput) (work.RebuildResult, error) {
	defer a.alive(ctx)()
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return work.RebuildResult{}, err
	}
	exec := activity.GetInfo(ctx).WorkflowExecution
	src, err := a.cfg.History.Source(ctx, exec.ID, exec.RunID)
	if err != nil {
		return work.RebuildResult{}, err
	}
	src.Claim, src.Head = in.Claim, in.Head
	r, err := a.cfg.Open(in.Dir).Restore(ctx, blobs{s}, src)
	return work.RebuildResult{Tail: r.Tail, Damage: r.Damage}, foreign(err)
}

// Rehome checks that a directory is the one of a run that was somewhere else. It writes nothing.
func (a *Activities) Rehome(ctx context.Context, in work.RehomeInput) (work.RehomeResult, error) {
	defer a.alive(ctx)()
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return work.RehomeResult{}, err
	}
	err = a.cfg.Open(in.Dir).MayMoveHere(ctx, rundir.Moving{
		RunID: in.RunID, From: in.From, Epoch: in.Epoch, Execution: in.Execution, Tail: in.Tail, Truth: a.truth(blobs{s}, in.Head),
	})
	var refused *rundir.TargetError
	if errors.As(err, &refused) {
		err = temporal.NewNonRetryableApplicationError(err.Error(), work.ErrNotThere, err)
	}
	return work.RehomeResult{Host: a.cfg.Host}, err
}

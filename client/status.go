package client

import (
	"context"
	"time"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// Run is one run as lists show it. Fields that are not known have their zero value.
type Run struct {
	ID        string
	ThreadID  string // of the first run of its lineage
	Pipeline  string
	Task      string
	Directory string // empty: on another host, or removed

	// ShownStatus is the effective status: what the journal records, combined with what Temporal knows. EffectiveStatus
	// has both.
	run.ShownStatus
	EffectiveStatus run.EffectiveStatus

	Stage       string
	Passes      int // completed
	PassesTotal int // 0: not known, or the pipeline has no numbered passes
	Rounds      int
	CostUSD     float64
	Score       *float64  // nil: not scored
	StartedAt   time.Time // UTC
	Damage      string    // of the directory or its journal; empty: none is known

	SourceRun  string // the run from which this one was replayed, forked or followed up
	Mode       string // replay, fork, follow_up or from_run_plan
	Checkpoint string // of the source
}

// Status is the state of one run.
type Status struct {
	Run

	// State is folded from the events in the run directory.
	State run.State

	// Question is the open question of the run, which [Client.Decide] answers. Nil: there is none.
	Question *run.Question
}

// Status returns the state of a run from its directory and from Temporal. If the server does not answer,
// EffectiveStatus contains the reason and the status is the recorded one; that is not an error.
//
// Errors: [*NameError], [*DirectoryError].
func (c *Client) Status(ctx context.Context, name string) (Status, error) {
	dir, err := c.find(name)
	if err != nil {
		return Status{}, public(err)
	}
	row, state, err := c.op.Describe(ctx, dir)
	if err != nil {
		return Status{}, public(err)
	}
	s := Status{Run: fromRow(row), State: state}
	if q, open := state.Asks(); open {
		s.Question = &q
	}
	return s, nil
}

// pollEvery is how often Wait reads the status.
const pollEvery = 250 * time.Millisecond

// Wait waits until a condition holds for the status of a run, and returns that status. A nil condition waits for the
// end of the run, through pauses and questions. If ctx ends first, the error is its cause.
//
// Errors: those of [Client.Status].
func (c *Client) Wait(ctx context.Context, name string, until func(Status) bool) (Status, error) {
	if until == nil {
		until = func(s Status) bool { return s.Status.Closed() }
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		s, err := c.Status(ctx, name)
		if err != nil || until(s) {
			return s, err
		}
		select {
		case <-ctx.Done():
			return s, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// Filter selects runs. A zero field selects all.
type Filter struct {
	Status   []run.Status // one of these
	Pipeline string
	Stage    string
	ThreadID string // the lineage
	Since    time.Time
	Text     string // contained in id, pipeline, task, stage or directory, in any case
}

// List returns the runs that this host or the namespace knows, in no order. Runs without a directory on this host are
// shown as Temporal knows them.
func (c *Client) List(ctx context.Context, f Filter) ([]Run, error) {
	rows, lost, err := operations.Here(c.op.Settings.StateDir, c.op.Settings.RunRoot)
	if err != nil {
		return nil, public(err)
	}
	all, err := c.op.List(ctx, rows, lost, operations.Filter(f))
	if err != nil {
		return nil, public(err)
	}
	runs := make([]Run, len(all.Runs))
	for i, row := range all.Runs {
		runs[i] = fromRow(row)
	}
	return runs, nil
}

func fromRow(r operations.Row) Run {
	started, err := time.Parse(run.TimeFormat, r.StartedAt)
	if err != nil {
		started = time.Time{} // not known
	}
	return Run{
		ID: r.RunID, ThreadID: r.ThreadID, Pipeline: r.Pipeline, Task: r.Task, Directory: r.Directory,
		ShownStatus: r.EffectiveStatus.ShownStatus, EffectiveStatus: r.EffectiveStatus,
		Stage: r.Stage, Passes: r.Settled, PassesTotal: r.Passes,
		Rounds: r.Rounds, CostUSD: r.CostUSD, Score: r.Score, StartedAt: started, Damage: r.Damage,
		SourceRun: r.Source, Mode: r.Mode, Checkpoint: r.Checkpoint,
	}
}

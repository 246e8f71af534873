package api

import (
	"context"
	"errors"

	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// runName is what a client of the network may name a run by: an id or the beginning of one, and no directory.
var runName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// findByID finds a run of this host by its id: one that it has recorded, or one in the folder for runs.
func (h Host) findByID(id string) (rundir.Dir, error) {
	if !runName.MatchString(id) {
		return rundir.Dir{}, &operations.NameError{What: id, IDs: h.IDs}
	}
	d, err := operations.FindID(h.Settings.StateDir, h.Settings.RunRoot, id, h.Trust)
	var unknown *operations.NameError
	var gone *operations.MissingError
	switch {
	case errors.As(err, &unknown):
		unknown.IDs = h.IDs
	case errors.As(err, &gone):
		gone.IDs = h.IDs
	}
	return d, err
}

// notHere lists what only the directory of a run records.
var notHere = []string{"events", "passes", "checkpoints", "diff", "evidence", "diagnosis", "artifact", "screenshots",
	"snapshots", "report"}

// Elsewhere is the status of a run whose directory is on another host, or was moved or deleted on this one, from the
// answers of its workflow. It fails with the error for which the directory was not found, unless a server has the run.
func (h Host) Elsewhere(ctx context.Context, id string, missing error) (RunStatus, error) {
	if !runName.MatchString(id) {
		return RunStatus{}, missing
	}
	brief, cancel := context.WithTimeout(ctx, AskFor)
	defer cancel()
	o, err := h.Peek(brief, run.Claim{})
	if err != nil {
		return RunStatus{}, missing
	}
	defer o.Client.Close()
	far, err := o.Elsewhere(brief, operations.CompleteID(h.Settings.StateDir, id))
	if err != nil {
		return RunStatus{}, missing
	}
	var gone *operations.MissingError
	advice := ""
	if errors.As(missing, &gone) { // the directory was on this host
		far.Host, advice = "", h.ProblemOf(missing).Message
	}
	s := far.State
	out := RunStatus{
		RunID: s.RunID, Pipeline: s.Pipeline, Task: s.Task, ShownStatus: far.Effective.ShownStatus, Detail: far.Effective.Detail,
		Means: run.Means(far.Effective.Status, s.Reason), Progress: s.Progress(), CostUSD: s.Total(), Cost: s.CostText(),
		BudgetUSD: s.Budget.CapUSD, Score: s.Score, StartedAt: s.StartedAt, UpdatedAt: s.TS, Rejected: s.NotApproved(),
		AvailableActions: []run.Operation{}, Next: []string{}, Host: far.Host, Unavailable: notHere, Advice: advice,
	}
	if q, open := s.Asks(); open {
		asked := askedOf(&s, q)
		out.NeedsInput, out.Question = true, &asked
	}
	return out, nil
}

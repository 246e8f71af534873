package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// reopen begins a new epoch of a closed run: it acquires the directory, archives what is not archived yet, and
// journals what happened and the state to continue from.
func (e *engine) reopen(ctx workflow.Context) error {
	r := *e.in.Reopen
	e.in.Reopen = nil
	if _, err := e.acquireOwnership(ctx, contract.OpenInput{
		Epoch: r.Epoch, Cluster: r.Cluster, Embedded: r.Embedded, Address: r.Address,
	}); err != nil {
		return err
	}
	if err := e.j.archive(ctx, e.j.disk.tail); err != nil {
		return err
	}
	if r.From == run.Done { // only its end is missing, and nothing follows it
		e.open = true
		return nil
	}
	if r.Unended {
		end := run.RunEnd{Status: e.j.state.Status, Reason: e.j.state.Reason}
		if err := e.j.emit(ctx, run.KindRunEnd, "", end); err != nil {
			return err
		}
	}
	if r.Interruption != "" {
		if err := e.j.emit(ctx, run.KindRunInterrupted, e.j.state.Phase, run.RunInterrupted{
			Reason: r.Interruption, At: e.j.now(ctx),
		}); err != nil {
			return err
		}
	}
	from := e.j.state
	from.InFlight = nil
	e.tryNow = r.Now
	if r.Now {
		from.Limited = from.Limited.Due("", "", true)
	}
	ev := run.RunResumed{
		Epoch: r.Epoch, From: r.From, By: r.By, Note: r.Note, Force: r.Force, Why: r.Reason, Host: r.Host,
		Build:     r.Build,
		Overruled: r.Overruled, State: &from,
	}
	if err := e.j.emit(ctx, run.KindRunResumed, e.j.state.Phase, ev); err != nil {
		return err
	}
	if err := e.j.journalDamage(ctx, r.Repaired); err != nil {
		return err
	}
	if err := e.applyReopenDecision(ctx, r.Decision); err != nil {
		return err
	}
	if err := e.amendReopened(ctx, r.Amend); err != nil {
		return err
	}
	e.open = true
	if r.Cancel {
		return nil
	}
	if e.control.Revert = r.Revert; r.Revert != nil {
		return e.revert(ctx)
	}
	if err := e.askGateAgain(ctx); err != nil {
		return err
	}
	if err := e.j.flush(ctx); err != nil {
		return err
	}
	e.tellParent(ctx)
	return e.adoptEdits(ctx)
}

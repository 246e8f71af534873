package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// reopen begins a new epoch of a closed run: it acquires the directory, archives what is not archived yet, and
// journals what happened and the state to continue from.
func (e *engine) reopen(ctx workflow.Context) error {
	r := *e.in.Reopen
	e.in.Reopen, e.in.Target.Epoch = nil, r.Epoch // which the journal has later
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
	if r.Waits {
		return e.reopenWaiting(ctx, r)
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
	if err := e.refuseSuperseded(ctx, r); err != nil {
		return err
	}
	e.forgetAnswered()
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

// reopenWaiting begins an epoch that waits for what the last one waited for.
func (e *engine) reopenWaiting(ctx workflow.Context, r contract.Reopen) error {
	ev := run.RunResumed{Epoch: r.Epoch, From: e.j.state.Status, Why: r.Interruption, Host: r.Host, Build: r.Build, Waits: true}
	if err := e.j.emit(ctx, run.KindRunResumed, e.j.state.Phase, ev); err != nil {
		return err
	}
	if err := e.publish(ctx, run.State{}); err != nil { // the attributes are those of the last execution
		return err
	}
	if err := e.j.journalDamage(ctx, r.Repaired); err != nil {
		return err
	}
	if err := e.refuseSuperseded(ctx, r); err != nil {
		return err
	}
	e.forgetAnswered()
	if err := e.restoreWait(ctx); err != nil { // routes must be known before a decision arrives
		return err
	}
	e.open = true
	if err := e.j.flush(ctx); err != nil {
		return err
	}
	e.tellParent(ctx)
	return nil
}

// refuseSuperseded journals the messages that came to an execution whose directory was newer.
func (e *engine) refuseSuperseded(ctx workflow.Context, r contract.Reopen) error {
	for _, ev := range r.Refused {
		if err := e.control.journalRefused(ctx, ev); err != nil {
			return err
		}
	}
	return nil
}

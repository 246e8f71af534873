package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// amendReopened puts the plan in force with which an operator opened the epoch. A refusal pauses the run.
func (lp *loop) amendReopened(ctx workflow.Context, m *contract.Message) error {
	if m == nil {
		return nil
	}
	_, err := lp.handlers.amend(ctx, *m)
	if err == nil || ctx.Err() != nil {
		return err
	}
	ev := run.DecisionRefused{Verb: contract.VerbAmend, Reason: errorMessage(err), By: m.By}
	lp.journal.emit(ctx, run.KindDecisionRefused, lp.state().Phase, ev)
	lp.pause(ctx, run.UserRequested, "the definition was not adopted: "+errorMessage(err), m.By)
	return nil
}

// applyReopenDecision journals the decision that this epoch was opened with.
func (lp *loop) applyReopenDecision(ctx workflow.Context, m *contract.Message) error {
	if m == nil {
		return nil
	}
	if err := lp.questions.restoreRoutes(ctx); err != nil {
		return err
	}
	_, err := lp.questions.decide(ctx, *m)
	return err
}

// nextEpoch continues the run from its directory. A closed run is not continued: the execution ends as the directory
// records. One that another cluster executes ends here.
func (lp *loop) nextEpoch(outer workflow.Context) (contract.Result, error) {
	ctx, cancel := workflow.NewDisconnectedContext(outer)
	defer cancel()
	lp.journal.surrender()
	lp.inbox.supersede()
	if err := lp.handlers.drainHandlers(ctx); err != nil {
		return contract.Result{}, err
	}
	knew := lp.journal.end().Seq
	in := contract.NextEpochInput{Claim: lp.in.Claim}
	var next contract.NextEpochResult
	if err := lp.awaitNextEpoch(ctx, outer, &in, &next); err != nil {
		return contract.Result{}, err
	}
	if next.Elsewhere != "" {
		return contract.Result{}, temporal.NewNonRetryableApplicationError(fmt.Sprintf("run %s continues on the Temporal cluster %s",
			lp.in.Target.RunID, next.Elsewhere), contract.ErrNewer, nil)
	}
	if next.State.Status.Closed() && (next.Ended || next.State.Status != run.Done) {
		return lp.recordedEnd(ctx, next)
	}
	if err := lp.handlers.drainHandlers(ctx); err != nil {
		return contract.Result{}, err
	}
	return contract.Result{}, nextExecution(ctx, contract.PipelineWorkflow, lp.nextInput(next, knew, outer.Err() != nil))
}

// awaitNextEpoch asks the host of the directory, until the directory can be continued or the run is cancelled.
func (lp *loop) awaitNextEpoch(ctx, outer workflow.Context, in *contract.NextEpochInput,
	next *contract.NextEpochResult) error {
	for n := 0; ; n++ {
		err := lp.journal.runDirectoryActivity(ctx, "continue from the run directory", contract.NextEpoch, in, next)
		if !isType(err, contract.ErrDamaged) && !isType(err, contract.ErrBadInput) && !isType(err, contract.ErrNoStore) {
			return err
		}
		if outer.Err() != nil {
			return outer.Err()
		}
		if err := lp.host.awaitRetry(ctx, n, errorMessage(err), func() bool { return outer.Err() != nil }); err != nil {
			return err
		}
	}
}

// recordedEnd ends this execution as the directory records the end of the run.
func (lp *loop) recordedEnd(ctx workflow.Context, next contract.NextEpochResult) (contract.Result, error) {
	lp.journal.load(&contract.Snapshot{State: next.State, Tail: next.Tail, Head: next.Head})
	s := lp.state()
	workflow.GetLogger(ctx).Warn("the run has ended already: this execution changed nothing", "status", s.Status)
	if err := lp.journal.publish(ctx, run.State{}); err != nil {
		return contract.Result{}, err
	}
	lp.show(ctx)
	lp.children.tellParent(ctx)
	switch s.Status {
	case run.Failed, run.Interrupted:
		return lp.result(), temporal.NewNonRetryableApplicationError(s.Reason, "Failed", errors.New(s.Reason))
	case run.Cancelled:
		return lp.result(), temporal.NewCanceledError("the run was cancelled")
	}
	return lp.result(), nil
}

// nextInput is the input of the next epoch. A run that waits continues to wait for the same.
func (lp *loop) nextInput(next contract.NextEpochResult, knew int64, cancelled bool) contract.Input {
	in, s := lp.in, next.State
	in.Start, in.Options.TimeScale = next.Start, next.TimeScale
	in.Snapshot = &contract.Snapshot{State: s, Tail: next.Tail, Head: next.Head, Archived: next.Archived}
	in.Reopen = &contract.Reopen{
		Epoch: next.Epoch, From: run.Interrupted, Host: next.Host, Cluster: next.Cluster, Embedded: next.Embedded,
		Address: next.Address, Repaired: next.Repaired, Cancel: cancelled, Refused: lp.inbox.uncounted(),
		Interruption: fmt.Sprintf("its workflow had %d of the %s of this directory, as after a reset, or after Temporal's "+
			"database was restored from a backup", knew, run.Plural(int(next.Tail.Seq), "event")),
	}
	lp.replay.save(in.Snapshot)
	if q, asks := s.Asks(); asks && !askedAgain(q) {
		in.Snapshot.Pending = &contract.PendingWait{ID: q.ID, At: s.Next, LastReminded: q.RequestedAt}
	}
	if s.Status == run.Done { // only its end is missing
		in.Reopen.From = run.Done
	}
	in.Reopen.Waits = !cancelled && standsStill(s)
	return in
}

// openDirectory opens the directory and journals the first event of a new run.
func (lp *loop) openDirectory(ctx workflow.Context) error {
	// a run that is cancelled before it starts still journals start and end, and an epoch its begin
	begun, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	if lp.in.Reopen != nil {
		return lp.reopen(begun)
	}
	if lp.in.Snapshot != nil {
		if err := lp.questions.restoreWait(ctx); err != nil { // routes must be known before a decision arrives
			return err
		}
		lp.inbox.opened()
		return nil
	}
	opened, err := lp.acquireOwnership(begun, contract.OpenInput{
		Epoch: lp.in.Start.Epoch, Cluster: lp.in.Claim.Cluster, Embedded: lp.in.Claim.Embedded, Task: lp.in.Start.Task,
	})
	if err != nil {
		return err
	}
	lp.inbox.opened()
	lp.in.Start.Task = opened.Task
	lp.journal.emit(ctx, run.KindRunStart, "", lp.in.Start)
	lp.startReplay(ctx)
	lp.awaitReset(ctx)
	return nil
}

// awaitReset has a new run wait for the limit that ended the conversation which it continues.
func (lp *loop) awaitReset(ctx workflow.Context) {
	if a := lp.in.Start.Adopted; a != nil && a.Limited != nil && lp.in.Start.State == nil {
		ev := run.RunLimited{Limited: run.Limited{LimitedCall: *a.Limited}}
		lp.journal.emit(ctx, run.KindRunLimited, lp.state().Phase, ev)
	}
}

// acquireOwnership makes the directory this epoch's: its events must end where the journal does.
func (lp *loop) acquireOwnership(ctx workflow.Context, in contract.OpenInput) (contract.OpenResult, error) {
	in.Claim, in.Tail, in.Execution = lp.in.Claim, lp.journal.end(), workflow.GetInfo(ctx).FirstRunID
	var res contract.OpenResult
	if err := lp.journal.runDirectoryActivity(ctx, "open the run directory", contract.Open, &in, &res); err != nil {
		return res, fmt.Errorf("open %s: %w", lp.in.Target.Dir, err)
	}
	return res, nil
}

// askGateAgain asks the question of a gate again, at which the run was halted or cancelled before this epoch, or which
// is undecided. The answer that it is about is journaled already: without this, the step would be taken again with the
// same answer. A run that the decision of this epoch has halted asks nothing.
func (lp *loop) askGateAgain(ctx workflow.Context) error {
	q, at := lp.state().Gate, lp.state().Next
	if open, undecided := lp.state().Open(run.QuestionGate); undecided && open.Trigger == run.TriggerCheckFailed {
		q = &open
	}
	if q == nil || q.Of != "" || !lp.active() || at.Stage >= len(lp.in.Start.Stages) {
		return nil
	}
	if err := lp.round.read(ctx, at); err != nil {
		return err
	}
	step, there := lp.round.At(at.Step)
	if !there { // the definition was amended
		return nil
	}
	lp.questions.again(ctx, at, run.QuestionRequested{
		Kind: q.Kind, Question: q.Text, Phase: q.Phase, Round: q.Round, Trigger: q.Trigger, Digest: q.Digest,
		Artifacts: q.Artifacts, Actions: q.Actions, Deadlines: lp.questions.deadlines(ctx, step.Questions),
	})
	return nil
}

// reopen begins a new epoch of a closed run: it acquires the directory, archives what is not archived yet, and
// journals what happened and the state to continue from.
func (lp *loop) reopen(ctx workflow.Context) error {
	r := *lp.in.Reopen
	lp.in.Reopen, lp.in.Target.Epoch = nil, r.Epoch // which the journal has later
	if _, err := lp.acquireOwnership(ctx, contract.OpenInput{
		Epoch: r.Epoch, Cluster: r.Cluster, Embedded: r.Embedded, Address: r.Address,
	}); err != nil {
		return err
	}
	if err := lp.journal.archive(ctx); err != nil {
		return err
	}
	if r.From == run.Done { // only its end is missing, and nothing follows it
		lp.inbox.opened()
		return nil
	}
	if r.Waits {
		return lp.reopenWaiting(ctx, r)
	}
	if r.Unended {
		end := run.RunEnd{Status: lp.state().Status, Reason: lp.state().Reason}
		lp.journal.emit(ctx, run.KindRunEnd, "", end)
	}
	if r.Interruption != "" {
		lp.journal.emit(ctx, run.KindRunInterrupted, lp.state().Phase, run.RunInterrupted{
			Reason: r.Interruption, At: lp.journal.time(ctx),
		})
	}
	from := lp.state()
	from.InFlight = nil
	lp.inbox.try(r.Now)
	if r.Now {
		from.Limited = from.Limited.Due("", "", true)
	}
	ev := run.RunResumed{
		Epoch: r.Epoch, From: r.From, By: r.By, Note: r.Note, Force: r.Force, Why: r.Reason, Host: r.Host,
		Build:     r.Build,
		Overruled: r.Overruled, State: &from,
	}
	lp.journal.emit(ctx, run.KindRunResumed, lp.state().Phase, ev)
	lp.journal.journalDamage(ctx, r.Repaired)
	if err := lp.refuseSuperseded(ctx, r); err != nil {
		return err
	}
	lp.questions.forgetAnswered()
	if err := lp.applyReopenDecision(ctx, r.Decision); err != nil {
		return err
	}
	if err := lp.amendReopened(ctx, r.Amend); err != nil {
		return err
	}
	lp.inbox.opened()
	if r.Cancel {
		return nil
	}
	if r.Revert != nil {
		lp.inbox.revert(r.Revert)
		return lp.reverts.revert(ctx)
	}
	if err := lp.askGateAgain(ctx); err != nil {
		return err
	}
	if err := lp.journal.flush(ctx); err != nil {
		return err
	}
	lp.children.tellParent(ctx)
	return lp.checkout.adoptEdits(ctx)
}

// reopenWaiting begins an epoch that waits for what the last one waited for.
func (lp *loop) reopenWaiting(ctx workflow.Context, r contract.Reopen) error {
	ev := run.RunResumed{Epoch: r.Epoch, From: lp.state().Status, Why: r.Interruption, Host: r.Host, Build: r.Build, Waits: true}
	lp.journal.emit(ctx, run.KindRunResumed, lp.state().Phase, ev)
	if err := lp.journal.publish(ctx, run.State{}); err != nil { // the attributes are those of the last execution
		return err
	}
	lp.journal.journalDamage(ctx, r.Repaired)
	if err := lp.refuseSuperseded(ctx, r); err != nil {
		return err
	}
	lp.questions.forgetAnswered()
	if err := lp.questions.restoreWait(ctx); err != nil { // routes must be known before a decision arrives
		return err
	}
	lp.inbox.opened()
	if err := lp.journal.flush(ctx); err != nil {
		return err
	}
	lp.children.tellParent(ctx)
	return nil
}

// refuseSuperseded journals the messages that came to an execution whose directory was newer.
func (lp *loop) refuseSuperseded(ctx workflow.Context, r contract.Reopen) error {
	for _, ev := range r.Refused {
		if err := lp.inbox.journalRefused(ctx, ev); err != nil {
			return err
		}
	}
	return nil
}

package operations

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Reverting configures a revert.
type Reverting struct {
	To         string // checkpoint, or a boundary: pass-35, round-2
	Note       string
	StayPaused bool // stay paused there
	Force      bool // revert a halted run
	Reason     string
}

// Reverted is the place from which a run continues.
type Reverted struct {
	RunID      string `json:"run_id"`
	Checkpoint string `json:"checkpoint"`
	Pass       int    `json:"at_pass"`
	Generation int    `json:"generation"` // that starts with the revert
	Epoch      int    `json:"epoch"`

	Warning string `json:"warning,omitempty"` // damage of the checkpoint that was repaired

	Actions []string `json:"actions"` // external actions that the run executes again, see [ActionsAfter]
}

// Revert returns a paused, failed, cancelled or interrupted run to a checkpoint (lifecycle.md): the same run, with
// the next generation of calls. Nothing is lost: abandoned work stays in the journal and on disk, and its cost is
// counted. If the status does not allow it, the error is a *run.ConflictError. A missing or damaged checkpoint
// changes nothing.
func (o Operator) Revert(ctx context.Context, dir rundir.Dir, r Reverting) (Reverted, error) {
	out, err := o.revert(ctx, dir, r)
	if o.endedMeanwhile(ctx, out.RunID, err) {
		return o.revert(ctx, dir, r)
	}
	return out, err
}

func (o Operator) revert(ctx context.Context, dir rundir.Dir, r Reverting) (Reverted, error) {
	claim, err := dir.Claim()
	if err != nil {
		return Reverted{}, err
	}
	if err := dir.Known(); err != nil {
		return Reverted{}, err
	}
	now, effective, err := o.catchUp(ctx, dir, claim)
	if err != nil {
		return Reverted{}, err
	}
	if err := o.mayRevert(dir, now.State, effective, r); err != nil {
		return Reverted{}, err
	}
	c, warning, err := o.checkpoint(ctx, dir, claim, now, r.To)
	if err != nil {
		return Reverted{}, err
	}
	out := Reverted{Warning: warning, RunID: claim.RunID, Checkpoint: c.ID, Pass: c.State.Passes.LastSettled,
		Generation: now.State.Generation + 1, Epoch: now.State.Epoch}
	if out.Actions, err = ActionsAfter(dir, c.Seq); err != nil {
		return out, err
	}
	if effective.Liveness == run.LiveOpen {
		m := contract.Message{To: c.ID, Note: r.Note, StayPaused: r.StayPaused}
		_, err := o.sendInPlace(ctx, dir, claim, contract.VerbRevert, m)
		return out, err
	}
	if err := MayExecute(ctx, dir, claim); err != nil {
		return out, err
	}
	overruled, err := o.reevaluated(ctx, claim, dir, now, Reopening{Force: r.Force, Reason: r.Reason})
	if err != nil {
		return out, err
	}
	in, _, err := o.reopening(ctx, dir, claim, now, effective, Reopening{Force: r.Force, Reason: r.Reason, Note: r.Note})
	if err != nil {
		return out, err
	}
	in.Reopen.Overruled = overruled
	in.Reopen.Revert = &contract.PendingRevert{To: c.ID, By: o.By, Note: r.Note,
		StayPaused: r.StayPaused}
	out.Epoch = in.Reopen.Epoch
	return out, o.openEpoch(ctx, dir, claim, now, effective, in, contract.VerbRevert)
}

func (o Operator) mayRevert(dir rundir.Dir, s run.State, effective run.EffectiveStatus, r Reverting) error {
	switch {
	case effective.Liveness == run.LiveUnknown:
		return unknown(contract.VerbRevert, dir, effective)
	case effective.Status != run.Done && unexplained(Reopening{Force: r.Force, Reason: r.Reason}):
		return &RefusedError{Verb: contract.VerbRevert, Why: needsReason}
	}
	if r.Force {
		if err := mayForce(o.Settings); err != nil {
			return err
		}
	}
	return run.May(effective.Status, run.Revert, s.Terms().Force(r.Force))
}

// openEpoch starts the first execution of a closed run's next epoch, after the journal in its directory is complete.
// Of several concurrent calls one wins.
func (o Operator) openEpoch(ctx context.Context, dir rundir.Dir, claim run.Claim, c rundir.Continuation,
	effective run.EffectiveStatus, in contract.Input, verb string) error {
	if err := o.refill(ctx, dir, claim, c); err != nil {
		return fmt.Errorf("%s run %s: %w", verb, claim.RunID, err)
	}
	if err := Index(o.Settings.StateDir, claim.RunID, dir.Root); err != nil {
		return err
	}
	reuse := enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
	if effective.Status == run.Halted {
		reuse = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}
	err := o.execute(ctx, in, reuse)
	var there *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &there) {
		return &RefusedError{Verb: verb,
			Why:                fmt.Sprintf("run %s is already running: another process resumed it", claim.RunID),
			FailedPrecondition: true}
	}
	if err != nil {
		return fmt.Errorf("%s run %s: %w", verb, claim.RunID, err)
	}
	return nil
}

// checkpoint finds a checkpoint of a run and checks that all its data exists. A checkpoint that is missing or damaged
// in the store is rebuilt from the journal, with a warning.
func (o Operator) checkpoint(ctx context.Context, dir rundir.Dir, claim run.Claim, now rundir.Continuation,
	id string) (c run.Checkpoint, warning string, err error) {
	s, err := o.openStore(ctx, claim)
	if err != nil {
		return c, "", err
	}
	journal, start := now.Checkpoints, now.Start
	if start.RunID == "" { // the run is open: its directory decides
		journal = func() (rundir.Names, error) { return rundir.Checkpoints(dir) }
		if start, err = dir.First(); err != nil {
			return c, "", err
		}
	}
	marks, err := journal()
	if err != nil {
		return c, "", err
	}
	c, warning, err = rundir.RestoreCheckpoint(ctx, blobs.Of(s), marks, claim.RunID, id)
	if err != nil {
		return c, "", err
	}
	if err := rundir.VerifyCheckpoint(dir, c.ID); err != nil {
		return c, "", fmt.Errorf("%w; restore it (starter repair-state %s --apply), then revert", err,
			shell.Quote(dir.Root))
	}
	var lost *rundir.MissingError
	if _, err := rundir.Import(ctx, dir, blobs.Of(s), start, c.State); err != nil && !errors.As(err,
		&lost) { // the next line reports what is lost
		return c, "", err
	}
	c, err = blobs.Checkpoint(ctx, s, claim.RunID, id)
	return c, warning, err
}

// Cancel ends a live, paused or interrupted run (lifecycle.md): it ends the running call and writes a terminal event,
// the last one. No workflow writes the journal of an interrupted run, so a new epoch does, without a call. A run that
// was already cancelled stays unchanged.
func (o Operator) Cancel(ctx context.Context, dir rundir.Dir) error {
	claim, err := dir.Claim()
	if err != nil {
		return err
	}
	if err := AtHome(o.Settings.StateDir, claim, dir); err != nil {
		return err
	}
	now, effective, err := o.Observe(ctx, dir, claim)
	if err != nil {
		return err
	}
	switch {
	case effective.Status == run.Cancelled:
		return nil
	case effective.Liveness == run.LiveUnknown:
		return unknown(string(run.Cancel), dir, effective)
	case effective.Liveness == run.LiveOpen && now.State.Status.Closed(): // its workflow is about to end
		return &run.ConflictError{Operation: run.Cancel, From: now.State.Status,
			Allowed: run.Operations(now.State.Status)}
	case effective.Liveness != run.LiveOpen:
		_, open := now.State.Asks()
		if err := run.May(effective.Status, run.Cancel, run.Terms{Undecided: open}); err != nil {
			return err
		}
		return o.cancelInterrupted(ctx, dir, claim)
	}
	if err := o.inPlace(ctx, string(run.Cancel), claim, dir); err != nil { // even before its first event
		return err
	}
	// the execution that writes the end knows all events; one that does not answer is cancelled too
	if err := o.Refresh(ctx, dir); ctx.Err() != nil {
		return err
	}
	return o.cancelWorkflow(ctx, claim.RunID)
}

func (o Operator) cancelWorkflow(ctx context.Context, id string) error {
	if err := o.Client.CancelWorkflow(ctx, id, ""); err != nil {
		return fmt.Errorf("cancel run %s: %w", id, err)
	}
	return nil
}

// WithoutDirectory returns the id of a run that was named but whose directory was not found: a recorded run, or a whole
// id that Temporal may know.
func WithoutDirectory(named string, err error) (id string, ok bool) {
	var gone *MissingError
	var unknown *NameError
	switch {
	case errors.As(err, &gone):
		return gone.RunID, true
	case errors.As(err, &unknown):
		return named, len(unknown.Found) == 0 && uuid.Validate(named) == nil
	}
	return "", false
}

// CancelID cancels the open workflow of a run without a directory: its worker rebuilds the directory and writes the end
// there. missing is the error of the directory. It is returned if this host has not recorded the run, and Temporal does
// not know it.
func (o Operator) CancelID(ctx context.Context, id string, missing error) error {
	d, err := o.Client.DescribeWorkflowExecution(ctx, id, "")
	none := errors.As(err, new(*serviceerror.NotFound))
	info := d.GetWorkflowExecutionInfo()
	switch {
	case err != nil && !none:
		return fmt.Errorf("ask Temporal about run %s: %w", id, err)
	case none && !errors.As(missing, new(*MissingError)), !none && info.GetType().GetName() != contract.PipelineWorkflow:
		return missing
	case !none && info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return o.cancelWorkflow(ctx, id)
	}
	return &RefusedError{Verb: string(run.Cancel), Closed: true, Why: fmt.Sprintf("run %s has no directory and no open "+
		"workflow, so nothing of it runs. To remove what is left: starter remove %s; to restore the directory: "+
		"starter rebuild %s --output-dir DIR", id, shell.Quote(id), shell.Quote(id))}
}

// cancelInterrupted opens the epoch that closes an interrupted run as cancelled. The settings are not checked,
// because no call is made.
func (o Operator) cancelInterrupted(ctx context.Context, dir rundir.Dir, claim run.Claim) error {
	now, effective, err := o.catchUp(ctx, dir, claim)
	if err != nil {
		return err
	}
	if effective.Status == run.Cancelled {
		return nil
	}
	if err := run.May(effective.Status, run.Cancel, run.Terms{}); err != nil { // the history has more than the directory
		return err
	}
	if now.State.Checkpoint == nil {
		return &RefusedError{Verb: string(run.Cancel),
			Why: "the run has no checkpoint to continue from: remove it (starter remove " + claim.RunID +
				")",
			FailedPrecondition: true}
	}
	in, _, err := o.reopening(ctx, dir, claim, now, effective, Reopening{})
	if err != nil {
		return err
	}
	in.Reopen.Cancel = true
	if err := calls.EndAll(ctx, o.Settings.Scratch(), claim.RunID); err != nil {
		return err
	}
	return o.openEpoch(ctx, dir, claim, now, effective, in, string(run.Cancel))
}

// refill writes the lines that the directory lacks or has otherwise.
func (o Operator) refill(ctx context.Context, dir rundir.Dir, claim run.Claim, c rundir.Continuation) error {
	s, err := o.openStore(ctx, claim)
	if err != nil {
		return err
	}
	return rundir.Refill(ctx, dir, blobs.Of(s), c)
}

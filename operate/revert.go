package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

// Reverting says where a run is to go back to.
type Reverting struct {
	To     string // checkpoint, or a boundary: pass-35, cycle-2
	Note   string
	Rest   bool // stay paused there
	Force  bool // although it was halted
	Reason string
}

// Reverted says where a run goes on from.
type Reverted struct {
	RunID      string `json:"run_id"`
	Checkpoint string `json:"checkpoint"`
	Pass       int    `json:"at_pass"`
	Generation int    `json:"generation"` // that begins with it
	Epoch      int    `json:"epoch"`

	Warning string `json:"warning,omitempty"` // what was found wrong with the checkpoint, and repaired
}

// Revert takes a run that rests or has failed, was cancelled or interrupted, back to a checkpoint (lifecycle.md): the same run, the next generation of
// its calls. Nothing is lost: what is left behind stays in the journal and on disk, and its cost is counted. Where it may not, the error is a
// *run.ConflictError; a checkpoint that is missing or damaged changes nothing.
func (o Operator) Revert(ctx context.Context, dir rundir.Dir, r Reverting) (Reverted, error) {
	claim, err := dir.Claim()
	if err != nil {
		return Reverted{}, err
	}
	now, stands, err := o.catchUp(ctx, dir, claim)
	if err != nil {
		return Reverted{}, err
	}
	if err := o.mayRevert(now.State, stands, r); err != nil {
		return Reverted{}, err
	}
	c, warning, err := o.checkpoint(ctx, dir, claim, now, r.To)
	if err != nil {
		return Reverted{}, err
	}
	out := Reverted{Warning: warning, RunID: claim.RunID, Checkpoint: c.ID, Pass: c.State.Passes.LastSettled, Generation: now.State.Generation + 1, Epoch: now.State.Epoch}
	if stands.Liveness == run.LiveOpen {
		if err := o.rehome(ctx, claim, dir, now.State.Status); err != nil {
			return out, err
		}
		m := workflows.Message{To: c.ID, Note: r.Note, Rest: r.Rest}
		_, err := o.Send(ctx, claim.RunID, workflows.VerbRevert, m)
		return out, err
	}
	overruled, err := o.reevaluated(ctx, claim, dir, now, Reopening{Force: r.Force, Reason: r.Reason})
	if err != nil {
		return out, err
	}
	in, _, err := o.reopening(ctx, dir, claim, now, stands, Reopening{Force: r.Force, Reason: r.Reason, Note: r.Note})
	if err != nil {
		return out, err
	}
	in.Reopen.Overruled = overruled
	in.Reopen.Revert = &workflows.Reverting{To: c.ID, By: o.By, Note: r.Note, Rest: r.Rest}
	out.Epoch = in.Reopen.Epoch
	return out, o.openEpoch(ctx, dir, claim, now, stands, in, workflows.VerbRevert)
}

func (o Operator) mayRevert(s run.State, stands run.Standing, r Reverting) error {
	switch {
	case stands.Liveness == run.LiveUnknown:
		return &RefusedError{Verb: workflows.VerbRevert, Why: fmt.Sprintf("whether the run is alive is unknown (%s)", stands.Detail)}
	case stands.Status != run.Done && unexplained(Reopening{Force: r.Force, Reason: r.Reason}):
		return &RefusedError{Verb: workflows.VerbRevert, Why: needsReason}
	}
	if r.Force {
		if err := mayForce(o.Settings); err != nil {
			return err
		}
	}
	_, open := s.Asks()
	return run.May(stands.Status, run.Revert, run.Terms{Forced: r.Force, Undecided: open})
}

// openEpoch starts the execution of a closed run's next epoch, after the journal is in its directory as it was written. Of several one wins.
func (o Operator) openEpoch(ctx context.Context, dir rundir.Dir, claim run.Claim, c rundir.Continuation, stands run.Standing, in workflows.Input, verb string) error {
	if err := o.refill(ctx, dir, claim, c, stands); err != nil {
		return fmt.Errorf("%s run %s: %w", verb, claim.RunID, err)
	}
	if err := Index(o.Settings.StateDir, claim.RunID, dir.Root); err != nil {
		return err
	}
	reuse := enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
	if stands.Status == run.Halted {
		reuse = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}
	err := o.execute(ctx, in, reuse)
	var there *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &there) {
		return &RefusedError{Verb: verb, Why: fmt.Sprintf("run %s goes on already: somebody else resumed it", claim.RunID)}
	}
	if err != nil {
		return fmt.Errorf("%s run %s: %w", verb, claim.RunID, err)
	}
	return nil
}

// checkpoint finds a checkpoint of a run and checks that everything it needs is there. One that is missing from the store or damaged there is rebuilt
// from the journal, with a warning.
func (o Operator) checkpoint(ctx context.Context, dir rundir.Dir, claim run.Claim, now rundir.Continuation, id string) (c run.Checkpoint, warning string, err error) {
	s, err := o.openStore(ctx, claim)
	if err != nil {
		return c, "", err
	}
	defer s.Close()
	journal, start := now.Checkpoints, now.Start
	if start.RunID == "" { // the run is open: its directory counts
		journal = dir.Checkpoints
		if start, err = dir.First(); err != nil {
			return c, "", err
		}
	}
	marks, err := journal()
	if err != nil {
		return c, "", err
	}
	c, warning, err = rundir.RestoreCheckpoint(ctx, activities.Blobs(s), marks, claim.RunID, id)
	if err != nil {
		return c, "", err
	}
	if err := dir.VerifyCheckpoint(c.ID); err != nil {
		return c, "", fmt.Errorf("%w; restore it (starter repair-state %s --apply), then revert", err, shell.Quote(dir.Root))
	}
	var lost *rundir.MissingError
	if _, err := dir.Import(ctx, activities.Blobs(s), start, c.State); err != nil && !errors.As(err, &lost) { // then the next line says what is lost
		return c, "", err
	}
	c, err = activities.SoundCheckpoint(ctx, s, claim.RunID, id)
	return c, warning, err
}

// Cancel ends a run that is live, paused or interrupted (lifecycle.md): the running call is ended, a terminal event written, and nothing after it. The
// journal of an interrupted run has nobody to write it, so a new epoch does that and makes no call. A run that was cancelled already is left as it is.
func (o Operator) Cancel(ctx context.Context, dir rundir.Dir) error {
	claim, err := dir.Claim()
	if err != nil {
		return err
	}
	if err := AtHome(o.Settings.StateDir, claim, dir); err != nil {
		return err
	}
	now, err := dir.Now()
	if err != nil {
		return err
	}
	stands := o.Standing(ctx, dir.Seat(claim), now.State.Status)
	switch {
	case stands.Status == run.Cancelled:
		return nil
	case stands.Liveness == run.LiveUnknown:
		return &RefusedError{Verb: string(run.Cancel), Why: fmt.Sprintf("whether the run is alive is unknown (%s)", stands.Detail)}
	case stands.Liveness == run.LiveOpen && now.State.Status.Closed(): // its workflow is about to end
		return &run.ConflictError{Operation: run.Cancel, From: now.State.Status, Allowed: run.Operations(now.State.Status)}
	case stands.Liveness == run.LiveOpen: // also one that has not written its first event
	default:
		_, open := now.State.Asks()
		if err := run.May(stands.Status, run.Cancel, run.Terms{Undecided: open}); err != nil {
			return err
		}
		return o.cancelInterrupted(ctx, dir, claim)
	}
	if err := o.Client.CancelWorkflow(ctx, claim.RunID, ""); err != nil {
		return fmt.Errorf("cancel run %s: %w", claim.RunID, err)
	}
	return nil
}

// cancelInterrupted opens the epoch in which an interrupted run is closed as cancelled. What the settings allow is not asked: nothing is called.
func (o Operator) cancelInterrupted(ctx context.Context, dir rundir.Dir, claim run.Claim) error {
	now, stands, err := o.catchUp(ctx, dir, claim)
	if err != nil {
		return err
	}
	if stands.Status == run.Cancelled {
		return nil
	}
	if err := run.May(stands.Status, run.Cancel, run.Terms{}); err != nil { // the history says more than the directory did
		return err
	}
	if now.State.Checkpoint == nil {
		return &RefusedError{Verb: string(run.Cancel), Why: "the run has no checkpoint from which an epoch could be opened: remove it (starter remove " + claim.RunID + ")"}
	}
	in, _, err := o.reopening(ctx, dir, claim, now, stands, Reopening{})
	if err != nil {
		return err
	}
	in.Reopen.Cancel = true
	if err := activities.EndCalls(ctx, o.Settings.Scratch(), claim.RunID); err != nil {
		return err
	}
	return o.openEpoch(ctx, dir, claim, now, stands, in, string(run.Cancel))
}

// refill writes the lines that the directory lacks, or holds otherwise.
func (o Operator) refill(ctx context.Context, dir rundir.Dir, claim run.Claim, c rundir.Continuation, stands run.Standing) error {
	s, err := o.openStore(ctx, claim)
	if err != nil {
		return err
	}
	defer s.Close()
	return dir.Refill(ctx, c, rundir.RepairOptions{Standing: stands, Blobs: activities.Blobs(s), Now: time.Now(), By: o.By})
}

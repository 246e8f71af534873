package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// RunInput names a run.
type RunInput struct {
	Run string `json:"run" jsonschema:"id of the run, the beginning of one, or its directory"`
}

// Cancel ends a run. The status of the answer is cancelled, or a worker has to process the request first.
func Cancel(ctx context.Context, h Host, in RunInput) (Answer, error) {
	d, claim, err := h.atHome(in.Run)
	if id, lost := operations.WithoutDirectory(in.Run, err); lost {
		return h.cancelID(ctx, id, err)
	}
	if err != nil {
		return Answer{}, err
	}
	return connected(ctx, h, func(o operations.Operator) (Answer, error) {
		if err := o.Cancel(ctx, d); err != nil {
			return Answer{}, err
		}
		why := "a worker has to process the request"
		cancelled := func(m rundir.Meta) bool { return run.Status(m.Status) == run.Cancelled }
		if none := withoutWorker(ctx, o, d, claim); none != nil { // waiting would be in vain
			why += ", but " + view.NoWorker(*none) + ". " + none.Fix(claim.RunID, h.WorkerCommand())
		} else if err := AwaitDirectory(ctx, d, cancelled); err != nil {
			return Answer{}, err
		}
		see := shell.Quote(d.Root)
		a := h.answer(d, claim.RunID, fmt.Sprintf("Run %s is cancelled. To see it: %s status %s", claim.RunID, h.Program,
			see))
		if a.Status != run.Cancelled {
			a.Message = fmt.Sprintf("Cancelling run %s: %s. To check: %s status %s", claim.RunID,
				strings.TrimSuffix(why, "."), h.Program, see)
		}
		return a, nil
	})
}

// cancelID ends a run whose directory is missing.
func (h Host) cancelID(ctx context.Context, id string, missing error) (Answer, error) {
	return connected(ctx, h, func(o operations.Operator) (Answer, error) {
		if err := o.CancelID(ctx, id, missing); err != nil {
			return Answer{}, err
		}
		text := fmt.Sprintf("Cancelling run %s: its directory is missing, and a worker has to rebuild it and write the end "+
			"there. To check: %s status %s", id, h.Program, id)
		return Answer{RunID: id, ShownStatus: run.Unknown.Shown(), Message: text}, nil
	})
}

// withoutWorker returns why nothing processes requests to an open run. Nil: a worker does, or it is not known.
func withoutWorker(ctx context.Context, o operations.Operator, d rundir.Dir, claim run.Claim) *run.NoWorker {
	_, s, err := o.Observe(ctx, d, claim)
	if err != nil {
		return nil
	}
	return o.NoWorker(ctx, d.CurrentClaim(claim), s)
}

// RevertInput is the input of [Revert].
type RevertInput struct {
	Run        string `json:"run" jsonschema:"id of the run, the beginning of one, or its directory"`
	To         string `json:"to" jsonschema:"a checkpoint, or a boundary such as pass-35 or round-2"`
	StayPaused bool   `json:"stay_paused,omitempty" jsonschema:"stay paused there"`
	Force      bool   `json:"force,omitempty" jsonschema:"revert a halted run; needs a reason"`
	Reason     string `json:"reason,omitempty" jsonschema:"the reason for force, which is recorded"`
	Note       string `json:"note,omitempty" jsonschema:"a note for the journal"`
}

// Reverted is the place from which a run continues.
type Reverted struct {
	operations.Reverted
	Message string `json:"message"`
}

// Revert returns a run to a checkpoint. It stays the same run.
func Revert(ctx context.Context, h Host, in RevertInput) (Reverted, error) {
	if in.To == "" {
		return Reverted{}, invalid("name the checkpoint with %s; to list them, run: starter checkpoints", h.flag("to"))
	}
	if err := h.explained(in.Force, in.Reason); err != nil {
		return Reverted{}, err
	}
	d, _, err := h.atHome(in.Run)
	if err != nil {
		return Reverted{}, err
	}
	return connected(ctx, h, func(o operations.Operator) (Reverted, error) {
		made, err := o.Revert(ctx, d, operations.Reverting{To: in.To, StayPaused: in.StayPaused, Force: in.Force,
			Reason: in.Reason, Note: in.Note})
		if err != nil {
			return Reverted{}, err
		}
		text := fmt.Sprintf("Run %s goes back to %s (pass %d).", made.RunID, made.Checkpoint, made.Pass)
		return Reverted{made, text}, AwaitDirectory(ctx, d, func(m rundir.Meta) bool {
			return m.State.Generation >= made.Generation
		})
	})
}

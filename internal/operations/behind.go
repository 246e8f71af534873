package operations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

// behindWait bounds the wait for the answer of a workflow that may be behind its directory.
const behindWait = 5 * time.Second

// Behind describes an open workflow that has fewer events than the directory of its run. A workflow has each event
// before the directory does, so Temporal's database was restored from a backup. Empty: it has all, or does not answer.
func (o Operator) Behind(ctx context.Context, dir rundir.Dir, runID string) string {
	now, err := dir.Now() // before the workflow answers, which may continue meanwhile
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, behindWait)
	defer cancel()
	var live workflows.StatusAnswer
	v, err := o.Client.QueryWorkflow(ctx, runID, "", workflows.QueryStatus)
	if err != nil || v.Get(&live) != nil || live.Seq >= now.Tail.Seq {
		return ""
	}
	return fmt.Sprintf("its workflow has %d of the %s of its directory, as after Temporal's database was restored from "+
		"a backup", live.Seq, run.Plural(int(now.Tail.Seq), "event"))
}

// behindOnRefusal is [Operator.Behind] of a workflow that has refused a message.
func (o Operator) behindOnRefusal(ctx context.Context, dir rundir.Dir, runID string, err error) string {
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Closed {
		return ""
	}
	return o.Behind(ctx, dir, runID)
}

// orBehind adds to a refusal that the workflow is behind its directory, with the command that continues the run.
func (o Operator) orBehind(ctx context.Context, dir rundir.Dir, runID string, err error) error {
	behind := o.behindOnRefusal(ctx, dir, runID, err)
	if behind == "" {
		return err
	}
	var refused *RefusedError
	errors.As(err, &refused)
	return &RefusedError{Verb: refused.Verb, FailedPrecondition: true,
		Why: fmt.Sprintf("%s. But %s. To continue from the directory: %s", refused.Why, behind, forcedResume(dir))}
}

// forcedResume is the command that continues a run from its directory alone. Another machine knows no id of the run.
func forcedResume(dir rundir.Dir) string {
	return "starter resume " + shell.Quote(dir.Root) + " --force --reason TEXT"
}

// endBehind terminates the open workflow of a run that is behind its directory, if the next epoch may continue the
// directory.
func (o Operator) endBehind(ctx context.Context, dir rundir.Dir, claim run.Claim, s run.State,
	r Reopening) (rundir.Continuation, run.EffectiveStatus, error) {
	effective := run.NewEffectiveStatus(s.Status, run.LiveClosed, r.Behind)
	err := mayReopen(s, effective, r)
	if err == nil && r.Force {
		err = mayForce(o.Settings)
	}
	if err != nil {
		return rundir.Continuation{}, effective, err
	}
	if err := o.Client.TerminateWorkflow(ctx, claim.RunID, "", r.Behind); err != nil {
		return rundir.Continuation{}, effective, fmt.Errorf("terminate the workflow of run %s: %w", claim.RunID, err)
	}
	c, effective, err := o.catchUp(ctx, dir, claim)
	effective.Detail = r.Behind
	return c, effective, err
}

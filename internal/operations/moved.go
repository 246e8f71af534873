package operations

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// placeWait bounds the wait for a workflow that is asked for its directory.
const placeWait = 5 * time.Second

// moved describes where the open workflow of a run writes, if that is not this directory on this host. Empty: it is. A
// directory that this host has recorded and written last was not moved. The error is that of a workflow that does not
// answer.
func (o Operator) moved(ctx context.Context, claim run.Claim, dir rundir.Dir) (string, error) {
	all, err := indexed(o.Settings.StateDir)
	if err != nil || dir.CurrentClaim(claim).Host == o.Host && sameFolder(all[claim.RunID], dir.Root) {
		return "", err
	}
	if err := o.attended(ctx, claim.RunID); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, placeWait)
	defer cancel()
	var at contract.DirectoryAnswer
	v, err := o.Client.QueryWorkflow(ctx, claim.RunID, "", contract.QueryDirectory)
	if err == nil {
		err = v.Get(&at)
	}
	switch here := at.Queue == contract.HostQueues(claim.TaskQueue, o.Host).Dir; {
	case err != nil:
		return "", fmt.Errorf("ask the workflow of run %s for its directory: %w", claim.RunID, err)
	case here && sameFolder(at.Dir, dir.Root):
		return "", nil
	case here:
		return fmt.Sprintf("its directory was moved: its workflow writes %s", at.Dir), nil
	}
	return fmt.Sprintf("its directory was moved: its workflow writes %s on %s", at.Dir, o.hostOf(ctx, at.Queue)), nil
}

// isPaused reports whether the workflow of a run is paused, and has no event that the directory lacks: a copy may be older.
func (o Operator) isPaused(ctx context.Context, runID string, c rundir.Continuation) bool {
	ctx, cancel := context.WithTimeout(ctx, placeWait)
	defer cancel()
	var live contract.StatusAnswer
	v, err := o.Client.QueryWorkflow(ctx, runID, "", contract.QueryStatus)
	return err == nil && v.Get(&live) == nil && live.Status.Class() == run.OperatorPause && live.Seq <= c.Tail.Seq
}

func sameFolder(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	one, err := os.Stat(a)
	other, errOther := os.Stat(b)
	return err == nil && errOther == nil && os.SameFile(one, other)
}

// inPlace refuses a message to an open run whose directory was moved: only a resume continues the run at the new place.
func (o Operator) inPlace(ctx context.Context, verb string, claim run.Claim, dir rundir.Dir) error {
	where, err := o.moved(ctx, claim, dir)
	if err == nil && where == "" {
		return nil
	}
	return notInPlace(verb, dir, where, err)
}

func notInPlace(verb string, dir rundir.Dir, where string, err error) error {
	why := fmt.Sprintf("%s. To continue the run here: starter resume %s", where, shell.Quote(dir.Root))
	if err != nil {
		why = fmt.Sprintf("%v. If the directory was moved here, and its old host is gone: %s", err, forcedResume(dir))
	}
	return &RefusedError{Verb: verb, Why: why, Moved: true, FailedPrecondition: true}
}

// forcedResume is the command that continues a run from its directory alone. Another host knows no id of the run.
func forcedResume(dir rundir.Dir) string {
	return "starter resume " + shell.Quote(dir.Root) + " --force --reason TEXT"
}

// endMoved terminates the open workflow of a paused run whose directory was moved, if the next epoch may continue the
// directory; by force, also that of a run that is not paused or does not answer. It returns where the workflow wrote.
// Empty: the directory was not moved.
func (o Operator) endMoved(ctx context.Context, dir rundir.Dir, claim run.Claim, c rundir.Continuation,
	r Reopening) (where string, err error) {
	switch where, err = o.moved(ctx, claim, dir); {
	case err == nil && where == "":
		return "", nil
	case err != nil && !r.Force:
		return "", notInPlace(contract.VerbResume, dir, "", err)
	case err != nil:
		where = "its workflow did not answer: " + err.Error()
	case !r.Force && !o.isPaused(ctx, claim.RunID, c):
		return "", unmet("the run is %s, and %s. Move the directory back and pause the run first; or, if the old host is "+
			"gone: %s", c.State.Status, where, forcedResume(dir))
	}
	if lost := rundir.Lost(dir, c.State); lost != nil {
		return "", lost
	}
	r.moved = where
	if err := mayReopen(dir, c.State, run.NewEffectiveStatus(c.State.Status, run.LiveClosed, where), r); err != nil {
		return "", err
	}
	if c.Start, err = dir.First(); err != nil {
		return "", err
	}
	if _, err := o.reevaluated(ctx, claim, dir, c, r); err != nil {
		return "", err
	}
	if err := o.Client.TerminateWorkflow(ctx, claim.RunID, "", where); err != nil {
		return "", fmt.Errorf("terminate the workflow of run %s: %w", claim.RunID, err)
	}
	return where, nil
}

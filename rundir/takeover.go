package rundir

import (
	"context"
	"fmt"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// StaleError reports that a directory has lines or an epoch that an execution does not know. Nothing was written.
type StaleError struct {
	Dir string
	Why string
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%s is not this start's: %s. Run: starter status %s", e.Dir, e.Why, shell.Quote(e.Dir))
}

// TakeOver makes the directory that of a new epoch, under its lock. Its journal must be as written ([Continue]), end at
// tail, and not be that of a finished run; and no other start may own the directory. The current owner may call it
// again. On return the owner is on disk, and projections of earlier epochs are refused.
func TakeOver(ctx context.Context, d Dir, o Owner, tail run.Tail) error {
	lock, err := lock(ctx, d, "open")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	have, err := d.Owner()
	if err != nil {
		return err
	}
	if have.Epoch > o.Epoch || have.Epoch == o.Epoch && have.Execution != o.Execution {
		return &StaleError{Dir: d.Root, Why: fmt.Sprintf("epoch %d is that of execution %s", have.Epoch,
			have.Execution)}
	}
	if have.Epoch == o.Epoch {
		return nil
	}
	ended, err := d.Ended()
	if err != nil {
		return err
	}
	if ended {
		return &StaleError{Dir: d.Root, Why: "its run is done, and done is final: fork it or follow it up"}
	}
	c, err := Continue(ctx, d, nil, nil)
	if err != nil {
		return err
	}
	if now := c.Tail; now != tail {
		return &StaleError{Dir: d.Root,
			Why: fmt.Sprintf("it ends at event %d (chain %.8s), not at event %d (chain %.8s)", now.Seq, now.Chain,
				tail.Seq, tail.Chain)}
	}
	raw, err := Seal(o)
	if err != nil {
		return err
	}
	if err := d.inside().Mkdir(d.Path(Orchestrator), DirPerm); err != nil {
		return err
	}
	return d.inside().WriteFile(d.Path(OwnerFile), raw, FilePerm)
}

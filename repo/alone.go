package repo

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/durable"
)

// Names of our locks in git's folders. A lock of git's own ends in .lock.
const (
	applyLock     = "passbook-apply-lock"     // of one checkout: a patch is applied to it
	worktreesLock = "passbook-worktrees-lock" // of a repository: its list of checkouts is read or changed
)

// alone does something while no other process of ours has the lock.
func alone(ctx context.Context, gitDir, lock string, do func() error) error {
	l, err := durable.WaitLock(ctx, filepath.Join(gitDir, lock), durable.Self("passbook", time.Now()))
	if err != nil {
		return err
	}
	return errors.Join(do(), l.Unlock())
}

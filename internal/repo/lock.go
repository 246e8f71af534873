package repo

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/internal/durable"
)

// Names of Passbook's locks in git's folders. Git's own locks end in .lock.
const (
	applyLock     = "passbook-apply-lock"     // of one checkout, while a patch is applied
	worktreesLock = "passbook-worktrees-lock" // of a repository, for its list of checkouts
)

// withLock runs do while it holds the lock.
func withLock(ctx context.Context, gitDir, lock string, do func() error) error {
	l, err := durable.WaitLock(ctx, filepath.Join(gitDir, lock), durable.Self("passbook", time.Now()))
	if err != nil {
		return err
	}
	return errors.Join(do(), l.Unlock())
}

package git

import (
	"context"
	"errors"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
)

// withLock runs do while it holds the lock at path. Git's own locks end in .lock.
func withLock(ctx context.Context, path string, do func() error) error {
	l, err := (disk.Disk{}).WaitLock(ctx, path, disk.Self("passbook", time.Now()))
	if err != nil {
		return err
	}
	return errors.Join(do(), l.Unlock())
}

package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Lock is an exclusive lock on a path. This process holds it until [Lock.Unlock] or its end. Children do not inherit
// it.
type Lock struct {
	file *os.File
	disk Disk
}

// ErrHeld reports that another process or another open lock holds a lock.
type ErrHeld struct {
	Path  string
	Owner Owner // from the holder's record; zero: there is none
}

func (e *ErrHeld) Error() string {
	return fmt.Sprintf("%s is locked by %s: wait for it to end, or stop it", e.Path, e.Owner)
}

// TryLock acquires the lock at path, or fails at once with [ErrHeld]. A missing file is created. It contains the
// owner's record while the lock is held. Another open lock of this process counts as another holder. The record of a
// dead holder is overwritten.
func TryLock(path string, owner Owner) (*Lock, error) { return Disk{}.TryLock(path, owner) }

// TryLock acquires the lock at path as the function does.
func (d Disk) TryLock(path string, owner Owner) (*Lock, error) {
	f, err := d.openFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	err = flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, &ErrHeld{Path: path, Owner: d.readOwner(path)}
	}
	if err == nil && !d.isAt(f, path) { // the last holder removed it
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return d.TryLock(path, owner)
	}
	if err == nil {
		err = record(f, owner)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, f.Close()))
	}
	return &Lock{file: f, disk: d}, nil
}

// WaitLock waits for the lock at path and acquires it. If ctx ends first, the error is both that of the context and
// [ErrHeld].
func WaitLock(ctx context.Context, path string, owner Owner) (*Lock, error) {
	return Disk{}.WaitLock(ctx, path, owner)
}

// WaitLock waits for the lock at path as the function does.
func (d Disk) WaitLock(ctx context.Context, path string, owner Owner) (*Lock, error) {
	const every = 20 * time.Millisecond // flock does not support contexts
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		l, err := d.TryLock(path, owner)
		if held := (*ErrHeld)(nil); !errors.As(err, &held) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// isAt reports whether path is still the name of an open file.
func (d Disk) isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := d.stat(path)
	return err == nil && os.SameFile(mine, there)
}

// Remove removes the file and frees the lock. A process that waits for the lock gets it on a new file.
func (l *Lock) Remove() error {
	if err := errors.Join(Disk{within: l.disk.within}.remove(l.file.Name()), l.file.Close()); err != nil {
		return fmt.Errorf("remove the lock %s: %w", l.file.Name(), err)
	}
	return nil
}

// Unlock empties the record and frees the lock. The file stays.
func (l *Lock) Unlock() error {
	err := errors.Join(l.file.Truncate(0), l.file.Close())
	if err != nil {
		return fmt.Errorf("unlock %s: %w", l.file.Name(), err)
	}
	return nil
}

// record writes the owner. It need not survive a crash: the lock does not either.
func record(f *os.File, owner Owner) error {
	line, err := json.Marshal(owner)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(line, '\n'), 0)
	return err
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

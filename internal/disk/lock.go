package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

// Owner describes the holder of a lock, for people. The kernel's lock decides, which a dead process does not hold.
type Owner struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Boot  string    `json:"boot,omitempty"` // of [Boot]
	Since time.Time `json:"since"`
	What  string    `json:"what"` // its task: "worker", "rebuild r-1"
}

// Self returns this process as an owner.
func Self(what string, now time.Time) Owner {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	return Owner{PID: os.Getpid(), Host: host, Boot: Boot(), Since: now.UTC().Truncate(time.Millisecond), What: what}
}

func (o Owner) String() string {
	if o.PID == 0 {
		return "a process that left no record"
	}
	return fmt.Sprintf("%s (pid %d on %s, since %s)", o.What, o.PID, o.Host, o.Since.Format(time.RFC3339))
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
func (d Disk) TryLock(path string, owner Owner) (*Lock, error) {
	in, name := d.at(path)
	f, err := in.open(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, explain(err, "lock", path)
	}
	l := &Lock{file: f, disk: Disk{within: d.within}}
	switch err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		held := &ErrHeld{Path: path}
		if json.NewDecoder(f).Decode(&held.Owner) != nil {
			held.Owner = Owner{} // it is being written
		}
		err = held
	case err == nil && !l.isAt(path): // the last holder removed it
		if err := f.Close(); err != nil {
			return nil, explain(err, "lock", path)
		}
		return d.TryLock(path, owner)
	case err == nil:
		if err = l.record(owner); err == nil {
			return l, nil
		}
	}
	return nil, errors.Join(err, f.Close())
}

// WaitLock waits for the lock at path and acquires it. If ctx ends first, the error is both that of the context and
// [ErrHeld].
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

// isAt reports whether path is still the name of the lock's file.
func (l *Lock) isAt(path string) bool {
	mine, err := l.file.Stat()
	there, missing := l.disk.stat(path)
	return err == nil && missing == nil && os.SameFile(mine, there)
}

// record writes the owner. It need not survive a crash: the lock does not either.
func (l *Lock) record(owner Owner) error {
	line, err := json.Marshal(owner)
	if err == nil {
		err = l.file.Truncate(0)
	}
	if err == nil {
		_, err = l.file.WriteAt(append(line, '\n'), 0)
	}
	return err
}

// Unlock empties the record and frees the lock. The file stays.
func (l *Lock) Unlock() error {
	return explain(errors.Join(l.file.Truncate(0), l.file.Close()), "unlock", l.file.Name())
}

// Remove removes the file and frees the lock. A process that waits for the lock gets it on a new file.
func (l *Lock) Remove() error {
	return explain(errors.Join(l.disk.Remove(l.file.Name()), l.file.Close()), "remove the lock", l.file.Name())
}

// Held reports whether a lock is held. It creates and writes nothing: a missing file is not locked. It
// shares the lock for an instant, in which [Disk.TryLock] finds it held; [Disk.WaitLock] waits.
func (f Folder) Held(name string) (bool, error) {
	file, err := f.OpenFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, explain(err, "inspect the lock", f.Path(name))
	}
	defer Close(file)
	err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, explain(err, "inspect the lock", f.Path(name))
}

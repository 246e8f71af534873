package rundir

import (
	"context"
	"fmt"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
)

// inside returns the disk for writing in the directory. It writes nothing outside, whatever the directory contains.
func (d Dir) inside() disk.Disk { return d.Disk.In(d.Root) }

// lock takes the directory's lock, and waits for its current holder. A directory that a newer release has written is a
// [NewerError].
func lock(ctx context.Context, d Dir, what string) (*disk.Lock, error) {
	if err := d.Known(); err != nil {
		return nil, err
	}
	l, err := disk.Disk{}.In(d.Root).WaitLock(ctx, d.Path(LockFile), disk.Self(what, time.Now()))
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", d.Root, err)
	}
	return l, nil
}

// export calls change with the directory's exporter under its lock. With cold, nothing of an earlier export counts.
func (d Dir) export(ctx context.Context, blobs Blobs, truth Truth, what string, cold bool, change func(*exporter) error) error {
	held, err := lock(ctx, d, what)
	if err != nil {
		return err
	}
	defer held.Unlock()
	open := d.open
	if cold {
		open = func(ctx context.Context, blobs Blobs, truth Truth) (*exporter, error) {
			return d.openCold(ctx, blobs, truth, false)
		}
	}
	w, err := open(ctx, blobs, truth)
	if err != nil {
		return err
	}
	return change(w)
}

// tryLock takes the directory's lock, or fails at once with [disk.ErrHeld].
func tryLock(d Dir, what string) (*disk.Lock, error) {
	if err := d.Known(); err != nil {
		return nil, err
	}
	return disk.Disk{}.In(d.Root).TryLock(d.Path(LockFile), disk.Self(what, time.Now()))
}

// cutTail moves what follows the first bytes of a file of lines to a file in torn/.
func (d Dir) cutTail(name string, size int64, to string) error {
	if err := d.inside().Mkdir(d.Path(TornDir), DirPerm); err != nil {
		return err
	}
	return d.inside().CutTail(d.Path(name), size, d.Path(to))
}

// Blobs is the part of a store that an export uses. It knows trees only by their digests.
type Blobs interface {
	Getter
	Put(ctx context.Context, data []byte) (string, error)
	// Name stores data under a name. Existing data stays.
	Name(ctx context.Context, name string, data []byte) error
	// Manifest lists a whole tree in the format of run directories.
	Manifest(ctx context.Context, tree string) ([]byte, error)
	// LayDown makes the folder at dir contain exactly a tree; it creates the folder if necessary. Nothing is synced.
	LayDown(ctx context.Context, tree, dir string) error
	// PutTree stores the entries of a manifest, except for the contents of its files. A changed manifest is [ErrDamaged].
	PutTree(ctx context.Context, manifest []byte) error
}

// Strange returns an error if meta.json belongs to another run, because neither run.json nor the journal has its run
// ID.
func Strange(d Dir, m Meta) error {
	claim, err := d.Claim()
	if err != nil || m.RunID == "" || m.RunID == claim.RunID {
		return nil //nolint:nilerr // an unreadable claim is reported by its own check
	}
	if first, err := d.First(); err != nil || first.RunID != claim.RunID {
		return nil //nolint:nilerr // then run.json may be the one of another run
	}
	return fmt.Errorf("%s is %w: it is of run %s", d.Path(MetaFile), disk.ErrDamaged, m.RunID)
}

package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/durable"
)

// HiddenFromGit is the .gitignore of a run directory that lies in a checkout.
const HiddenFromGit = "*\n"

// Remove removes what the run has made, and the directory if nothing else is in it. Links are removed and never followed. While somebody writes there,
// it removes nothing, with durable.ErrHeld. Cut off anywhere, it can be called again; the claim goes last.
func (d Dir) Remove() error {
	lock, err := d.LockForRemoval()
	if err != nil {
		return err
	}
	return errors.Join(d.RemoveLocked(), lock.Unlock())
}

// LockForRemoval takes the directory's lock, or fails at once with durable.ErrHeld.
func (d Dir) LockForRemoval() (*durable.Lock, error) {
	lock, err := durable.TryLock(d.Path(LockFile), durable.Self("remove", time.Now()))
	if err != nil {
		return nil, fmt.Errorf("remove run directory %s: %w", d.Root, err)
	}
	return lock, nil
}

// RemoveLocked is Remove for who holds the directory's lock.
func (d Dir) RemoveLocked() error {
	if err := d.remove(); err != nil {
		return fmt.Errorf("remove run directory %s: %w", d.Root, err)
	}
	return nil
}

func (d Dir) remove() error {
	c, err := d.Contents()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(d.Root) // nothing outside can be reached
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range c.Own {
		if err := d.removeOne(root, name); err != nil {
			return err
		}
	}
	return d.RemoveEmpty()
}

// removeOne removes a file or a folder; the claim only when everything else is gone from the disk.
func (d Dir) removeOne(root *os.Root, name string) error {
	if name != ClaimFile {
		return root.RemoveAll(filepath.FromSlash(name))
	}
	if err := removeFolder(d.Path(orchestrator)); err != nil {
		return err
	}
	if err := d.Disk.Settle(d.Path(ClaimFile)); err != nil {
		return err
	}
	return d.Disk.Remove(d.Path(ClaimFile))
}

// RemoveEmpty removes the directory of a run that is gone from it. One with something in it stays, and so does what a link leads to.
func (d Dir) RemoveEmpty() error {
	if fi, err := os.Lstat(d.Root); err != nil || !fi.IsDir() {
		return nil //nolint:nilerr // gone, or a link, which the run has not made
	}
	return removeFolder(d.Root)
}

// removeFolder removes a folder unless something is in it.
func removeFolder(path string) error {
	left, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || len(left) > 0 {
		return err
	}
	return os.Remove(path)
}

package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Remove removes the files of the run, and the directory if it is then empty. Links are removed and never followed.
// While another process writes there, it removes nothing and returns disk.ErrHeld. After an interruption it can be
// called again; the claim is removed last.
func (d Dir) Remove() error {
	unlock, err := LockForRemoval(d)
	if err != nil {
		return err
	}
	return errors.Join(d.RemoveLocked(), unlock())
}

// LockForRemoval takes the directory's lock, or fails at once with disk.ErrHeld.
func LockForRemoval(d Dir) (unlock func() error, err error) {
	lock, err := tryLock(d, "remove")
	if err != nil {
		return nil, fmt.Errorf("remove run directory %s: %w", d.Root, err)
	}
	return lock.Unlock, nil
}

// RemoveLocked is Remove for the holder of the directory's lock.
func (d Dir) RemoveLocked() error {
	if err := d.remove(); err != nil {
		return fmt.Errorf("remove run directory %s: %w", d.Root, err)
	}
	return nil
}

func (d Dir) remove() error {
	c, err := ReadContents(d)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(d.Root) // prevents access outside the directory
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range c.Own {
		if err := d.removeOne(root, name); err != nil {
			return err
		}
	}
	return RemoveEmpty(d)
}

// removeOne removes a file or a folder; the claim only after everything else has been removed from disk.
func (d Dir) removeOne(root *os.Root, name string) error {
	if name != ClaimFile {
		return root.RemoveAll(filepath.FromSlash(name))
	}
	if err := removeFolder(d.Path(Orchestrator)); err != nil {
		return err
	}
	if err := d.inside().Settle(d.Path(ClaimFile)); err != nil {
		return err
	}
	return d.inside().Remove(d.Path(ClaimFile))
}

// RemoveEmpty removes the directory of a removed run. A directory that is not empty stays, and so does the target of a
// link.
func RemoveEmpty(d Dir) error {
	if fi, err := os.Lstat(d.Root); err != nil || !fi.IsDir() {
		return nil //nolint:nilerr // it does not exist, or is a link that the run did not create
	}
	return removeFolder(d.Root)
}

// removeFolder removes a folder if it is empty.
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

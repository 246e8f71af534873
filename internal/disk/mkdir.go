package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
)

// Mkdir creates the folder at path and the missing folders above it. On return every created folder, and the existing
// one above them, is on disk under its name. An existing folder keeps its mode.
func (d Disk) Mkdir(path string, perm fs.FileMode) error {
	path = filepath.Clean(path)
	missing, err := d.missingFolders(path)
	if err != nil {
		return fmt.Errorf("make folder %s: %w", path, err)
	}
	if err := d.settleFound(path, missing); err != nil {
		return fmt.Errorf("make folder %s: %w", path, err)
	}
	for _, folder := range missing {
		if err := d.mkdir(folder, perm); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make folder %s: %w", path, err)
		}
		if err := d.syncFolder(filepath.Dir(folder)); err != nil {
			return fmt.Errorf("make folder %s: %w", path, err)
		}
		d.remember(folder)
	}
	return nil
}

// MkdirEach creates the folder at path as [Disk.Mkdir] does, and folders in it. On return all of them are on disk under
// their names, after one sync.
func (d Disk) MkdirEach(path string, names []string, perm fs.FileMode) error {
	if err := d.Mkdir(path, perm); err != nil {
		return err
	}
	err := d.before(OpMkdir, filepath.Join(path, "..."))
	for _, name := range names {
		if err == nil {
			err = Disk{within: d.within}.mkdir(filepath.Join(path, name), perm)
		}
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err == nil {
		err = d.syncFolder(path)
	}
	if err != nil {
		return fmt.Errorf("make folders in %s: %w", path, err)
	}
	return nil
}

// missingFolders lists the folders to create for path, topmost first.
func (d Disk) missingFolders(path string) ([]string, error) {
	var missing []string
	for {
		info, err := d.stat(path)
		if err == nil && !info.IsDir() {
			return nil, &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
		}
		if err == nil {
			slices.Reverse(missing)
			return missing, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		missing = append(missing, path)
		path = filepath.Dir(path)
	}
}

// settleFound syncs the name of an existing folder, because its creator may have died before the sync. A parent that
// this user cannot read is skipped: this user creates no folders there.
func (d Disk) settleFound(path string, missing []string) error {
	found := path
	if len(missing) > 0 {
		found = filepath.Dir(missing[0])
	}
	if d.named(found) {
		return nil
	}
	err := d.syncFolder(filepath.Dir(found))
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err == nil {
		d.remember(found)
	}
	return err
}

// makeFolder creates the folder at path and the missing ones above it. It returns the folders whose names are not
// known to be on disk; the first one may have existed.
func (d Disk) makeFolder(path string, perm fs.FileMode) (unnamed []string, err error) {
	missing, err := d.missingFolders(path)
	if err != nil {
		return nil, err
	}
	found := path
	if len(missing) > 0 {
		found = filepath.Dir(missing[0])
	}
	if !d.named(found) {
		unnamed = []string{found}
	}
	for _, folder := range missing {
		if err := d.mkdir(folder, perm); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		unnamed = append(unnamed, folder)
	}
	return unnamed, nil
}

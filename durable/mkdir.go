package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Mkdir creates the folder at path and the folders above it that are missing.
// On return every folder that it made, and the one it found them in, is on
// disk under its name. A folder that is there already keeps its mode.
func (d Disk) Mkdir(path string, perm fs.FileMode) error {
	path = filepath.Clean(path)
	missing, err := missingFolders(path)
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
	}
	return nil
}

// missingFolders lists what has to be made for path, topmost first.
func missingFolders(path string) ([]string, error) {
	var missing []string
	for {
		info, err := os.Stat(path)
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

// settleFound syncs the name of the folder that was found: whoever made it may
// have died before doing so. A parent that this user cannot read is not one
// where this user makes folders.
func (d Disk) settleFound(path string, missing []string) error {
	found := path
	if len(missing) > 0 {
		found = filepath.Dir(missing[0])
	}
	err := d.syncFolder(filepath.Dir(found))
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// makeFolder makes the folder at path and those above it that are missing. It
// gives the folders that have to be synced for their names to be on disk: the
// first one is that of a folder which was found.
func (d Disk) makeFolder(path string, perm fs.FileMode) (unsynced []string, err error) {
	missing, err := missingFolders(path)
	if err != nil {
		return nil, err
	}
	found := path
	if len(missing) > 0 {
		found = filepath.Dir(missing[0])
	}
	unsynced = []string{filepath.Dir(found)}
	for _, folder := range missing {
		if err := d.mkdir(folder, perm); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		unsynced = append(unsynced, filepath.Dir(folder))
	}
	return unsynced, nil
}

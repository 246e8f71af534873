package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// Names collects names of files and folders that may not survive a power failure until [Names.Sync], which syncs the
// folder of any number of names once. What its disk writes, makes and settles is collected, in place of synced.
type Names struct {
	Disk
	mu      sync.Mutex
	folders map[string]bool // to be synced; false: only if this user can read it
}

// Names returns an empty collection.
func (d Disk) Names() *Names {
	n := &Names{folders: map[string]bool{}}
	n.Disk, n.Disk.names = d, n
	return n
}

// named calls do with the collection that the disk belongs to, or with a new one that it syncs at the end.
func (d Disk) named(do func(*Names) error) error {
	if d.names != nil {
		return do(d.names)
	}
	n := d.Names()
	if err := do(n); err != nil {
		return err
	}
	return n.Sync()
}

// add collects a name.
func (n *Names) add(path string, must bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	dir := filepath.Dir(path)
	n.folders[dir] = n.folders[dir] || must
}

// Settle makes an existing file and its name durable, because its writer may have died before the sync.
func (d Disk) Settle(path string) error {
	return d.named(func(n *Names) error {
		n.add(path, true)
		return explain(d.sync(OpSync, []string{path}, nil), "make durable", path)
	})
}

// Mkdir creates the folder at path and the missing folders above it. On return every created folder, and the existing
// one above them, is on disk under its name: unless this user cannot read what it is in, and so creates no folders
// there. An existing folder keeps its mode.
func (d Disk) Mkdir(path string, perm fs.FileMode) error {
	return d.named(func(n *Names) error {
		return explain(n.mkdir(filepath.Clean(path), perm), "make folder", path)
	})
}

func (n *Names) mkdir(path string, perm fs.FileMode) error {
	found, missing, err := n.missing(path)
	if err != nil {
		return err
	}
	n.add(found, false) // its creator may have died before the sync
	for _, folder := range missing {
		err := n.change(OpMkdir, folder, func(in files, name string) error { return in.Mkdir(name, perm) })
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		n.add(folder, true)
	}
	return nil
}

// missing returns the existing folder at path or above it, and the missing ones below it, topmost first.
func (d Disk) missing(path string) (found string, missing []string, err error) {
	for {
		info, err := d.stat(path)
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			slices.Reverse(missing)
			return path, missing, err
		}
		missing = append(missing, path)
		path = filepath.Dir(path)
	}
}

// Sync makes the names durable. After an error a repeated call syncs them again.
func (n *Names) Sync() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.sync(OpSyncFolder, slices.Sorted(maps.Keys(n.folders)), n.folders); err != nil {
		return fmt.Errorf("files are written, but their names may not survive a power failure: %w", err)
	}
	clear(n.folders)
	return nil
}

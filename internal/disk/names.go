package disk

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Names collects complete files on disk whose names may not survive a power failure until [Names.Sync], which syncs
// the folder of any number of files once. It is safe for concurrent use.
type Names struct {
	disk    Disk
	mu      sync.Mutex
	folders map[string]bool
}

// Names returns an empty collection.
func (d Disk) Names() *Names { return &Names{disk: d, folders: map[string]bool{}} }

// Commit does what [Pending.Commit] does, except for syncing the name.
func (n *Names) Commit(p *Pending) error {
	if err := p.settle(); err != nil {
		return err
	}
	if err := p.replace(); err != nil {
		return err
	}
	n.add(p.path)
	return nil
}

// Settle does what [Disk.Settle] does, except for syncing the name.
func (n *Names) Settle(path string) error {
	f, err := n.disk.openFile(path, os.O_RDONLY, 0)
	if err == nil {
		err = errors.Join(n.disk.sync(f), f.Close())
	}
	if err != nil {
		return fmt.Errorf("make %s durable: %w", path, err)
	}
	n.add(path)
	return nil
}

func (n *Names) add(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.folders[filepath.Dir(path)] = true
}

// Sync makes the names durable. After an error a repeated call syncs the rest.
func (n *Names) Sync() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, folder := range slices.Sorted(maps.Keys(n.folders)) {
		if err := n.disk.syncFolder(folder); err != nil {
			return fmt.Errorf("the files in %s are written, but their names may not survive a power failure: %w",
				folder, err)
		}
		delete(n.folders, folder)
	}
	return nil
}

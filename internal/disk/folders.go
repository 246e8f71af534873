package disk

import (
	"io/fs"
	"os"
	"sync"
)

// Folders remembers folders whose names are on disk, so that they are not synced again. It is safe for concurrent use.
type Folders struct {
	mu  sync.Mutex
	all map[string]fs.FileInfo
}

const maxFolders = 8192

// has reports whether the folder that is at path now is on disk under that name.
func (f *Folders) has(path string, now fs.FileInfo) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	then, ok := f.all[path]
	return ok && os.SameFile(then, now)
}

func (f *Folders) add(path string, now fs.FileInfo) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil || len(f.all) >= maxFolders {
		f.all = map[string]fs.FileInfo{}
	}
	f.all[path] = now
}

// named reports whether the name of an existing folder is known to be on disk.
func (d Disk) named(folder string) bool {
	if d.Folders == nil {
		return false
	}
	info, err := d.stat(folder)
	return err == nil && d.Folders.has(folder, info)
}

// remember records that the names of folders are on disk.
func (d Disk) remember(folders ...string) {
	if d.Folders == nil {
		return
	}
	for _, folder := range folders {
		if info, err := d.stat(folder); err == nil && info.IsDir() {
			d.Folders.add(folder, info)
		}
	}
}

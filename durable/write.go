package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// File is a file to be written whole.
type File struct {
	Path   string
	Data   []byte
	Perm   fs.FileMode
	Verify *Verify // nil: not read back
}

// WriteFile replaces the file at path, or creates it; its folder must be there.
// On return data is on disk under that name. After an error the path holds the
// old content or the new one, whole.
func (d Disk) WriteFile(path string, data []byte, perm fs.FileMode) error {
	return d.WriteAll([]File{{Path: path, Data: data, Perm: perm}})
}

// WriteAll writes files as [Disk.WriteFile] does, in order, and syncs each
// folder once. Nothing is renamed before every file is whole on disk: an error
// before that leaves all old files and no temporary one. A crash later leaves
// the first few files new and the others old, so the file that commits the
// others belongs at the end of another call.
func (d Disk) WriteAll(files []File) error {
	pending := make([]*Pending, 0, len(files))
	defer func() {
		for _, p := range pending {
			p.Discard()
		}
	}()
	for _, f := range files {
		p, err := d.stage(f)
		if err != nil {
			return err
		}
		pending = append(pending, p)
	}
	for i, p := range pending {
		if err := p.settle(); err != nil {
			return files[i].Verify.refuse(p.path, err)
		}
	}
	for i, p := range pending {
		if err := p.replace(); err != nil {
			return files[i].Verify.refuse(p.path, err)
		}
	}
	return syncNames(pending)
}

// stage writes a temporary file and checks it.
func (d Disk) stage(f File) (*Pending, error) {
	p, err := d.Create(f.Path, f.Perm)
	if err != nil {
		return nil, f.Verify.refuse(f.Path, err)
	}
	if _, err = p.Write(f.Data); err == nil {
		err = f.Verify.check(p, f.Data)
	}
	if err != nil {
		p.Discard()
		return nil, f.Verify.refuse(f.Path, err)
	}
	return p, nil
}

// syncNames syncs each folder once, in the order of the files.
func syncNames(pending []*Pending) error {
	var synced []string
	for _, p := range pending {
		folder := filepath.Dir(p.path)
		if slices.Contains(synced, folder) {
			continue
		}
		if err := p.syncName(); err != nil {
			return err
		}
		synced = append(synced, folder)
	}
	return nil
}

// CreateExclusive creates the file at path if nothing is there. Of any number
// of callers, in any number of processes, one gets true. On return the name is
// on disk with the whole content of that one.
func (d Disk) CreateExclusive(path string, data []byte, perm fs.FileMode) (created bool, err error) {
	p, err := d.stage(File{Path: path, Data: data, Perm: perm})
	if err != nil {
		return false, err
	}
	return p.CommitNew()
}

// Settle makes a file that is there durable, with its name, as it is: whoever
// wrote it may have died before doing so.
func (d Disk) Settle(path string) error {
	f, err := os.Open(path)
	if err == nil {
		err = errors.Join(d.sync(f), f.Close())
	}
	if err == nil {
		err = d.syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("make %s durable: %w", path, err)
	}
	return nil
}

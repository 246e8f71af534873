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
	Path    string
	Data    []byte
	Perm    fs.FileMode
	DirPerm fs.FileMode // of the folders that are missing for it; 0: they must be there
	Verify  *Verify     // nil: not read back
}

// WriteFile replaces the file at path, or creates it; its folder must be there.
// On return data is on disk under that name. After an error the path holds the
// old content or the new one, whole.
func (d Disk) WriteFile(path string, data []byte, perm fs.FileMode) error {
	return d.WriteAll([]File{{Path: path, Data: data, Perm: perm}})
}

// WriteAll writes files as [Disk.WriteFile] does, and renames them in order. The
// files are synced at the same time, and then each folder once, at the same
// time. Nothing is renamed before every file is whole on disk: an error before
// that leaves all old files and no temporary one. A crash later leaves the
// first few files new and the others old, so the file that commits the others
// belongs at the end of another call. A folder that is made here is on disk
// under its name, as after [Disk.Mkdir].
func (d Disk) WriteAll(files []File) error {
	pending := make([]*Pending, 0, len(files))
	defer func() {
		for _, p := range pending {
			p.Discard()
		}
	}()
	above, err := d.makeFolders(files)
	if err != nil {
		return err
	}
	for _, f := range files {
		p, err := d.stage(f)
		if err != nil {
			return err
		}
		pending = append(pending, p)
	}
	for i, err := range d.settleAll(pending) {
		if err != nil {
			return files[i].Verify.refuse(files[i].Path, fmt.Errorf("write %s: %w", files[i].Path, err))
		}
	}
	for i, p := range pending {
		if err := p.replace(); err != nil {
			return files[i].Verify.refuse(p.path, err)
		}
	}
	return d.syncNames(files, above)
}

// makeFolders makes what is missing for files, and gives the folders whose
// sync makes that last.
func (d Disk) makeFolders(files []File) (unsynced []string, err error) {
	seen := map[string]bool{}
	for _, f := range files {
		folder := filepath.Dir(f.Path)
		if f.DirPerm == 0 || seen[folder] {
			continue
		}
		seen[folder] = true
		above, err := d.makeFolder(folder, f.DirPerm)
		if err != nil {
			return nil, fmt.Errorf("make folder %s: %w", folder, err)
		}
		unsynced = append(unsynced, above...)
	}
	return unsynced, nil
}

// settleAll makes temporary files durable.
func (d Disk) settleAll(pending []*Pending) []error {
	open := make([]*os.File, len(pending))
	for i, p := range pending {
		open[i] = p.file
	}
	errs := d.syncAll(open)
	for i, f := range open {
		errs[i] = errors.Join(errs[i], f.Close())
	}
	return errs
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

// syncNames syncs the folders of files, and those above them that were made. A
// folder above that this user cannot read is not one where this user makes
// folders.
func (d Disk) syncNames(files []File, above []string) error {
	var folders []string
	for _, f := range files {
		if dir := filepath.Dir(f.Path); !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	own := len(folders)
	for _, dir := range above {
		if !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	for i, err := range d.syncFolders(folders) {
		if err != nil && (i < own || !errors.Is(err, fs.ErrPermission)) {
			return fmt.Errorf("the files in %s are written, but their names may not survive a power cut: %w", folders[i], err)
		}
	}
	return nil
}

// CreateExclusive creates the file at path if nothing is there. Of any number
// of callers, in any number of processes, one gets true. On return the name is
// on disk with the whole content of that one.
func (d Disk) CreateExclusive(path string, data []byte, perm fs.FileMode) (created bool, err error) {
	return d.CreateNew(File{Path: path, Data: data, Perm: perm})
}

// CreateNew does as [Disk.CreateExclusive], and makes the folders that are
// missing as [Disk.WriteAll] does.
func (d Disk) CreateNew(f File) (created bool, err error) {
	above, err := d.makeFolders([]File{f})
	if err != nil {
		return false, err
	}
	p, err := d.stage(f)
	if err != nil {
		return false, err
	}
	if created, err = p.link(); err != nil {
		return false, err
	}
	// The one who was second may act on the name too, so it must last for both.
	return created, d.syncNames([]File{f}, above)
}

// Settle makes a file that is there durable, with its name, as it is: whoever
// wrote it may have died before doing so.
func (d Disk) Settle(path string) error {
	err := d.syncFile(path)
	if err == nil {
		err = d.syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("make %s durable: %w", path, err)
	}
	return nil
}

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// File is a complete file to write.
type File struct {
	Path    string
	Data    []byte
	Perm    fs.FileMode
	DirPerm fs.FileMode // mode of missing folders; 0: they must exist
	Verify  *Verify     // nil: not read back

	// Unsynced: after a power failure the file may be missing, empty or the old one. It is for data that its reader finds
	// elsewhere then. [Disk.SyncFileSystem] makes it durable.
	Unsynced bool
}

// WriteFile creates or replaces the file at path, whose folder must exist. On return data is on disk under that name.
// After an error the path has either the old or the new content, complete.
func (d Disk) WriteFile(path string, data []byte, perm fs.FileMode) error {
	return d.WriteAll([]File{{Path: path, Data: data, Perm: perm}})
}

// WriteAll writes files as [Disk.WriteFile] does, and renames them in order. The files are synced concurrently, and
// then each folder once. No file is renamed before all are complete on disk: an earlier error leaves all old files
// and no temporary one. A later crash leaves the first files new and the others old, so write a file that commits the
// others last, in a separate call. A created folder is on disk under its name, as after [Disk.Mkdir].
func (d Disk) WriteAll(files []File) error {
	pending := make([]*Pending, 0, len(files))
	defer func() {
		for _, p := range pending {
			p.Discard()
		}
	}()
	unnamed, err := d.makeFolders(files)
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
	for i, err := range d.settleAll(files, pending) {
		if err != nil {
			return files[i].Verify.refuse(files[i].Path, fmt.Errorf("write %s: %w", files[i].Path, err))
		}
	}
	for i, p := range pending {
		if err := p.replace(); err != nil {
			return files[i].Verify.refuse(p.path, err)
		}
	}
	return d.syncNames(files, unnamed)
}

// makeFolders creates the missing folders of files, and returns the folders whose names are to be synced.
func (d Disk) makeFolders(files []File) (unnamed []string, err error) {
	seen := map[string]bool{}
	for _, f := range files {
		folder := filepath.Dir(f.Path)
		if f.DirPerm == 0 || seen[folder] {
			continue
		}
		seen[folder] = true
		made, err := d.makeFolder(folder, f.DirPerm)
		if err != nil {
			return nil, fmt.Errorf("make folder %s: %w", folder, err)
		}
		if slices.ContainsFunc(files, func(o File) bool { return !o.Unsynced && filepath.Dir(o.Path) == folder }) {
			unnamed = append(unnamed, made...)
		}
	}
	return unnamed, nil
}

// settleAll closes temporary files, and makes them durable unless they may stay unsynced.
func (d Disk) settleAll(files []File, pending []*Pending) []error {
	errs := make([]error, len(pending))
	var open []*os.File
	var at []int
	for i, p := range pending {
		if !files[i].Unsynced {
			open, at = append(open, p.file), append(at, i)
		}
	}
	for i, err := range d.syncAll(open) {
		errs[at[i]] = err
	}
	for i, p := range pending {
		errs[i] = errors.Join(errs[i], p.file.Close())
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

// syncNames syncs the folders of files, and those of unnamed folders. A folder that this user cannot read is skipped:
// this user creates no folders there.
func (d Disk) syncNames(files []File, unnamed []string) error {
	var folders []string
	for _, f := range files {
		if dir := filepath.Dir(f.Path); !f.Unsynced && !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	own := len(folders)
	for _, folder := range unnamed {
		if above := filepath.Dir(folder); !slices.Contains(folders, above) {
			folders = append(folders, above)
		}
	}
	for i, err := range d.syncFolders(folders) {
		if err != nil && (i < own || !errors.Is(err, fs.ErrPermission)) {
			return fmt.Errorf("the files in %s are written, but their names may not survive a power failure: %w",
				folders[i],
				err)
		}
	}
	d.remember(unnamed...)
	return nil
}

// CreateExclusive creates the file at path if nothing exists there. Of any number of callers in any number of
// processes, one gets true. On return the name is on disk with the complete content of that caller.
func (d Disk) CreateExclusive(path string, data []byte, perm fs.FileMode) (created bool, err error) {
	return d.CreateNew(File{Path: path, Data: data, Perm: perm})
}

// CreateNew does what [Disk.CreateExclusive] does, and creates missing folders as [Disk.WriteAll] does.
func (d Disk) CreateNew(f File) (created bool, err error) {
	unnamed, err := d.makeFolders([]File{f})
	if err != nil {
		return false, err
	}
	p, err := d.stage(f)
	if err != nil {
		return false, err
	}
	if created, err = p.link(!f.Unsynced); err != nil {
		return false, err
	}
	// The other callers may act on the name too, so it must be durable for them.
	return created, d.syncNames([]File{f}, unnamed)
}

// Settle makes an existing file and its name durable, because its writer may have died before the sync.
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

package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// File is a complete file to write.
type File struct {
	Path    string
	Data    []byte
	Fill    func(io.Writer) error // in place of Data: writes the content
	Perm    fs.FileMode
	DirPerm fs.FileMode // mode of missing folders; 0: they must exist
	State   bool        // it is the file from which a run continues: JSON, which is read back before it is renamed

	// Unsynced: after a power failure the file may be missing, empty or the old one. It is for data that its reader finds
	// elsewhere then. [Disk.SyncFileSystem] makes it durable.
	Unsynced bool
}

// StateRefusal is the required message of a failed write of the state file (requirement 002 §3.3).
const StateRefusal = "State file verification failed after write. State NOT updated."

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
	return d.named(func(n *Names) error {
		temps, err := n.stage(files)
		if err != nil {
			return refuse(files, err)
		}
		for i, f := range files {
			if err := d.rename(temps[i], f.Path); err != nil {
				d.drop(temps[i:])
				return refuse(files[i:], explain(err, "write", f.Path))
			}
			if !f.Unsynced {
				n.add(f.Path, true)
			}
		}
		return nil
	})
}

// CreateExclusive creates the file at path if nothing exists there. Of any number of callers in any number of
// processes, one gets true. On return the name is on disk with the complete content of that caller.
func (d Disk) CreateExclusive(path string, data []byte, perm fs.FileMode) (created bool, err error) {
	err = d.named(func(n *Names) error {
		temps, err := n.stage([]File{{Path: path, Data: data, Perm: perm}})
		if err != nil {
			return err
		}
		err = d.link(temps[0], path)
		d.drop(temps)
		if created = err == nil; err != nil && !errors.Is(err, fs.ErrExist) {
			return explain(err, "create", path)
		}
		n.add(path, true) // the other callers may act on the name too, so it must be durable for them
		return nil
	})
	return created, err
}

// refuse explains an error that left files in place.
func refuse(files []File, err error) error {
	if i := slices.IndexFunc(files, func(f File) bool { return f.State }); i >= 0 {
		return fmt.Errorf("%s (%s: %w)", StateRefusal, files[i].Path, err)
	}
	return err
}

// stage writes temporary files that are complete on disk, in folders whose names it collects.
func (n *Names) stage(files []File) (temps []string, err error) {
	defer func() {
		if err != nil {
			n.drop(temps)
		}
	}()
	unsynced := n.Names() // never synced, and so used last
	for _, names := range []*Names{n, unsynced} {
		last := ""
		for _, f := range files {
			dir := filepath.Dir(f.Path)
			if f.DirPerm == 0 || f.Unsynced != (names == unsynced) || dir == last {
				continue
			}
			if err := names.Mkdir(dir, f.DirPerm); err != nil {
				return nil, err
			}
			last = dir
		}
	}
	all := flushes()
	for _, f := range files {
		name := tempName(f.Path)
		file, err := n.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, f.Perm)
		if err == nil {
			temps = append(temps, name)
			err = n.flush(all, file, f.Unsynced, n.fill(file, f))
		}
		if err != nil {
			return temps, errors.Join(explain(err, "write", f.Path), all.Wait())
		}
	}
	return temps, all.Wait()
}

// fill writes the content of a file, and reads it back if it is to be verified.
func (d Disk) fill(to *os.File, f File) error {
	if f.Fill != nil {
		return f.Fill(writer{d, to})
	}
	if err := d.write(to, f.Data); err != nil || !f.State {
		return err
	}
	if err := d.step(Step{Op: OpReadBack, Path: to.Name()}); err != nil {
		return err
	}
	back := make([]byte, len(f.Data)+1)
	n, err := to.ReadAt(back, 0)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("read it back: %w", err)
	case !bytes.Equal(back[:n], f.Data):
		return fmt.Errorf("the content differs from the %d bytes that were written: check the disk", len(f.Data))
	case !json.Valid(back[:n]):
		return errors.New("it is not JSON")
	}
	return nil
}

// writer writes with the steps of a disk.
type writer struct {
	disk Disk
	file *os.File
}

func (w writer) Write(data []byte) (int, error) { return len(data), w.disk.write(w.file, data) }

// drop removes temporary files. [Disk.CleanTempsOf] removes one that stays; no reader uses it.
func (d Disk) drop(temps []string) {
	for _, name := range temps {
		if err := d.Remove(name); err != nil {
			continue
		}
	}
}

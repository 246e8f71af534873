// Package disk reads and writes files.
//
// [Disk] writes files that survive a crash. It is the only type in Passbook that renames, truncates or writes files of
// a run directory or of a store. In a run directory it does so through [Disk.In], which never writes outside. Each
// function documents what is on disk when it returns without an error. In any case, a reader never sees part of a file
// at a path that was replaced or created here, and a growing file never loses a byte.
//
// "On disk" means that fsync has returned for the file, and for the folder of a new name. It does not help if the disk
// reports a sync that did not happen. The package does not coordinate writers: two writers of one file need a [Lock].
//
// [Folder] opens what is below a folder that another user may have written. [OpenIn], [OpenFile] and [ReadFile] open
// files that another program, such as an agent, may have replaced by anything. All of them open regular files only, and
// never block on a pipe. They do not judge contents.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// Disk is the file system with a hook for tests. Its zero value is ready to use. It may be copied, and is safe for
// concurrent use.
type Disk struct {
	// Hook, if set, is called before each step. Its error makes that step fail, and the operation continues as after
	// any failed step. A hook that fails from the k-th call on also fails the cleanup, so it leaves the disk as a crash
	// before that step does. An error of type [Torn] stops a write in its middle.
	Hook func(Step) error
	// Reads, if set, is called before a store on this disk reads a file. Its error is that of the read.
	Reads func(path string) error

	within Folder // of [Disk.In]; without a root: the host
	names  *Names // that the disk belongs to; nil: it syncs names at once
}

// Step is one change or one promise that an operation requests from the file system.
type Step struct {
	Op   Op
	Path string
	Data []byte // of a write: the bytes to append, which the hook must not change
}

// Op is a kind of step.
type Op string

// The kinds of steps. Reading is none, except for the verification of written data.
const (
	OpMkdir      Op = "mkdir"
	OpCreate     Op = "create"
	OpWrite      Op = "write"
	OpSync       Op = "sync"
	OpReadBack   Op = "read back"
	OpRename     Op = "rename"
	OpExchange   Op = "exchange"
	OpLink       Op = "link"
	OpRemove     Op = "remove"
	OpTruncate   Op = "truncate"
	OpSyncFolder Op = "sync folder"
	OpSyncSystem Op = "sync file system"
)

// Torn is an error that a hook returns before a write: the first Bytes bytes reach the file and the write fails, as
// on a full disk.
type Torn struct{ Bytes int }

func (t Torn) Error() string { return fmt.Sprintf("the write stopped after %d bytes", t.Bytes) }

func (d Disk) step(s Step) error {
	if d.Hook == nil {
		return nil
	}
	return explain(d.Hook(s), string(s.Op), s.Path)
}

func explain(err error, what, path string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}

// In returns the disk for a folder that another user may have written: paths that lead out of it are refused, whatever
// links it contains, and so is a folder or a file of another user. The folder itself may be missing.
func (d Disk) In(folder string) Disk {
	d.within = Folder{Root: filepath.Clean(folder)}
	return d
}

// at returns the folder of [Disk.In] and the name of a path below it, or the host if it is not below. The folder and
// those above it are on the host: they were named by the user of this process.
func (d Disk) at(path string) (in Folder, name string) {
	if up, err := filepath.Rel(path, d.within.Root); d.within.Root == "" || err == nil && filepath.IsLocal(up) {
		return Folder{host: true}, path
	}
	if name, err := filepath.Rel(d.within.Root, path); err == nil {
		path = name
	}
	return d.within, path
}

func (d Disk) stat(path string) (fs.FileInfo, error) {
	in, name := d.at(path)
	return in.Stat(name)
}

// entries lists a folder.
func (d Disk) entries(path string) ([]fs.DirEntry, error) {
	in, name := d.at(path)
	return in.ReadDir(name)
}

// look calls do with what is at a path, open for reading without blocking.
func (d Disk) look(path string, do func(*os.File) error) error {
	in, name := d.at(path)
	return in.do(func(in files) error { return look(in, name, do) })
}

// change announces a step and takes it.
func (d Disk) change(op Op, path string, do func(in files, name string) error) error {
	if err := d.step(Step{Op: op, Path: path}); err != nil {
		return err
	}
	in, name := d.at(path)
	return in.do(func(in files) error { return do(in, name) })
}

func (d Disk) rename(from, to string) error {
	_, from = d.at(from)
	return d.change(OpRename, to, func(in files, name string) error { return in.Rename(from, name) })
}

func (d Disk) link(from, to string) error {
	_, from = d.at(from)
	return d.change(OpLink, to, func(in files, name string) error { return in.Link(from, name) })
}

// Remove removes a file. After a power failure it may exist again.
func (d Disk) Remove(path string) error { return d.change(OpRemove, path, files.Remove) }

// Symlink creates a symbolic link. Its name is not synced.
func (d Disk) Symlink(target, path string) error {
	in, name := d.at(path)
	return in.do(func(in files) error { return in.Symlink(target, name) })
}

// open opens a regular file to change it. Below the folder of [Disk.In] it belongs to this user.
func (d Disk) open(path string, flag int, perm fs.FileMode) (*os.File, error) {
	if err := d.step(Step{Op: OpCreate, Path: path}); err != nil {
		return nil, err
	}
	in, name := d.at(path)
	return in.open(name, flag, perm)
}

func (d Disk) write(f *os.File, data []byte) error {
	err := d.step(Step{Op: OpWrite, Path: f.Name(), Data: data})
	if torn := (Torn{}); errors.As(err, &torn) {
		data = data[:min(torn.Bytes, len(data))]
	} else if err != nil {
		return err
	}
	_, werr := f.Write(data)
	return errors.Join(err, werr)
}

// flushes are syncs at the same time, because a disk joins those that wait for it.
func flushes() *errgroup.Group {
	var all errgroup.Group
	all.SetLimit(64)
	return &all
}

// flush closes a file after its write, and makes it durable before if that has no error.
func (d Disk) flush(all *errgroup.Group, f *os.File, unsynced bool, err error) error {
	if err == nil && !unsynced {
		err = d.step(Step{Op: OpSync, Path: f.Name()})
	}
	if err != nil || unsynced {
		return errors.Join(err, f.Close())
	}
	all.Go(func() error { return errors.Join(f.Sync(), f.Close()) })
	return nil
}

// sync makes files durable, or the names in folders. With must, those that it lacks are skipped if this user cannot read
// them.
func (d Disk) sync(op Op, paths []string, must map[string]bool) (err error) {
	all := flushes()
	for _, path := range paths {
		if err = d.step(Step{Op: op, Path: path}); err != nil {
			break
		}
		all.Go(func() error {
			err := d.look(path, (*os.File).Sync)
			if must != nil && !must[path] && errors.Is(err, fs.ErrPermission) {
				return nil
			}
			return err
		})
	}
	return errors.Join(err, all.Wait())
}

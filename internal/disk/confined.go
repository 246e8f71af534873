package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// In returns the disk for a folder that another user may have written: paths that lead out of it are refused, whatever
// links it contains, and so is a folder or a file of another user. The folder itself may be missing.
func (d Disk) In(folder string) Disk {
	d.within = filepath.Clean(folder)
	return d
}

// on calls inside with the name of a path below the folder of [Disk.In], and outside if there is none. The folder and
// those above it are outside: they were named by the user of this process.
func (d Disk) on(path string, inside func(root *os.Root, name string) error, outside func() error) error {
	if d.within == "" || above(path, d.within) {
		return outside()
	}
	name, err := filepath.Rel(d.within, path)
	if err != nil {
		return err
	}
	return Folder{Root: d.within}.Do(func(root *os.Root) error { return inside(root, name) })
}

// above reports whether path is the folder, or one above it.
func above(path, folder string) bool {
	rel, err := filepath.Rel(path, folder)
	return err == nil && filepath.IsLocal(rel)
}

// pair changes two names of one file system.
func (d Disk) pair(from, to string, inside func(root *os.Root, from, to string) error,
	outside func(from, to string) error,
) error {
	return d.on(to, func(root *os.Root, name string) error {
		old, err := filepath.Rel(d.within, from)
		if err != nil {
			return err
		}
		return inside(root, old, name)
	}, func() error { return outside(from, to) })
}

func (d Disk) stat(path string) (fi fs.FileInfo, err error) {
	err = d.on(path, func(root *os.Root, name string) error {
		fi, err = root.Stat(name)
		return err
	}, func() error {
		fi, err = os.Stat(path)
		return err
	})
	return fi, err
}

// openFile opens a file as os.OpenFile does. Below the folder of [Disk.In] it must be a regular one.
func (d Disk) openFile(path string, flag int, perm fs.FileMode) (f *os.File, err error) {
	if d.within == "" || above(path, d.within) {
		return os.OpenFile(path, flag, perm)
	}
	name, err := filepath.Rel(d.within, path)
	if err != nil {
		return nil, err
	}
	return Folder{Root: d.within}.OpenAs(name, flag, perm)
}

func (d Disk) readFile(path string) ([]byte, error) {
	f, err := d.openFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer Close(f)
	return ReadFrom(f, 0)
}

// readDir lists a folder.
func (d Disk) readDir(path string) (entries []fs.DirEntry, err error) {
	if d.within == "" {
		return os.ReadDir(path)
	}
	name, err := filepath.Rel(d.within, path)
	if err != nil {
		return nil, err
	}
	return Folder{Root: d.within}.ReadDir(name)
}

// walk visits everything in a folder, as filepath.WalkDir does.
func (d Disk) walk(dir string, visit fs.WalkDirFunc) error {
	if d.within == "" {
		return filepath.WalkDir(dir, visit)
	}
	name, err := filepath.Rel(d.within, dir)
	if err != nil {
		return err
	}
	f := Folder{Root: d.within}
	return f.Walk(filepath.ToSlash(name), func(name string, e fs.DirEntry, err error) error {
		return visit(f.Path(name), e, err)
	})
}

// Symlink creates a symbolic link.
func (d Disk) Symlink(target, path string) error {
	return d.on(path, func(root *os.Root, name string) error { return root.Symlink(target, name) },
		func() error { return os.Symlink(target, path) })
}

// openFolder opens a folder to sync it.
func (d Disk) openFolder(path string) (f *os.File, err error) {
	err = d.on(path, func(root *os.Root, name string) error {
		fi, err := root.Stat(name)
		if err == nil && !fi.IsDir() {
			err = &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
		}
		if err == nil {
			f, err = root.Open(name)
		}
		return err
	}, func() error {
		f, err = os.Open(path)
		return err
	})
	return f, err
}

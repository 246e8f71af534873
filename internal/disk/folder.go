package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Folder is a folder that another user may have written, such as a received run directory. It is opened again for each
// access.
//
// A name never leads out of the folder, whatever links it contains. Opening a file never blocks, and only regular files
// of this process's user are opened. A folder of another user is opened only with Trust. The folder's own path is not
// protected: that was named by the user of this process.
type Folder struct {
	Root  string
	Trust bool // open also what belongs to other users
}

const (
	// MaxFile is the size in bytes up to which a file is opened for reading.
	MaxFile = 1 << 30
	// MaxWhole is the size up to which [Folder.ReadFile] reads a file.
	MaxWhole = 256 << 20
	// MaxDepth is the number of folders below each other that [Folder.Walk] enters.
	MaxDepth = 256
)

// Do calls do with the opened folder. Its names do not lead out of it.
func (f Folder) Do(do func(*os.Root) error) (err error) {
	root, err := f.open()
	if err != nil {
		return err
	}
	err = f.named(do(root))
	if cerr := root.Close(); err == nil {
		err = cerr
	}
	return err
}

func (f Folder) open() (*os.Root, error) {
	fi, err := os.Stat(f.Root) // before it is opened: opening a FIFO blocks
	if err == nil && !fi.IsDir() {
		err = &fs.PathError{Op: "open", Path: f.Root, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(f.Root)
	if err != nil || f.Trust {
		return root, err
	}
	if fi, err = root.Stat("."); err == nil {
		err = owned(fi, f.Root, f.Root)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// OpenFile opens a regular file of up to [MaxFile] bytes for reading. name is relative to the folder and uses slashes.
func (f Folder) OpenFile(name string) (*os.File, error) {
	file, err := f.OpenAs(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	if err := upTo(file, MaxFile); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// upTo returns an error for a file of more than max bytes, which can be a sparse file of any size.
func upTo(file *os.File, max int64) error {
	fi, err := file.Stat()
	if err == nil && fi.Size() > max {
		err = &UnsafeError{Path: file.Name(), Why: fmt.Sprintf("it has %d bytes; at most %d are read", fi.Size(), max)}
	}
	return err
}

// OpenAs opens a regular file as os.OpenFile does.
func (f Folder) OpenAs(name string, flag int, perm fs.FileMode) (file *os.File, err error) {
	err = f.Do(func(root *os.Root) error {
		file, err = f.openAs(root, name, flag, perm)
		return err
	})
	return file, err
}

func (f Folder) openAs(root *os.Root, name string, flag int, perm fs.FileMode) (*os.File, error) {
	name = filepath.FromSlash(name)
	file, err := root.OpenFile(name, flag|syscall.O_NONBLOCK|syscall.O_NOCTTY, perm)
	if err != nil {
		if fi, lerr := root.Lstat(name); lerr == nil && fi.Mode().Type()&^fs.ModeSymlink != 0 {
			return nil, f.regular(fi, name)
		}
		return nil, err
	}
	fi, err := file.Stat()
	if err == nil {
		err = f.regular(fi, name)
	}
	if err == nil && !f.Trust {
		err = owned(fi, f.Path(name), f.Root)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ReadFile reads a regular file of up to [MaxWhole] bytes.
func (f Folder) ReadFile(name string) ([]byte, error) {
	file, err := f.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer Close(file)
	if err := upTo(file, MaxWhole); err != nil {
		return nil, err
	}
	return ReadFrom(file, 0)
}

// Close closes a file that was open for reading only. It returns no error, because nothing was written.
func Close(f *os.File) {
	if err := f.Close(); err != nil {
		return
	}
}

// ReadFrom reads a file from an offset to its end, of up to [MaxFile] bytes. What is appended meanwhile is left out.
func ReadFrom(r *os.File, from int64) ([]byte, error) {
	fi, err := r.Stat()
	if err == nil {
		err = upTo(r, MaxFile)
	}
	if err != nil {
		return nil, err
	}
	raw := make([]byte, max(0, fi.Size()-from))
	n, err := r.ReadAt(raw, from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return raw[:n], err
}

// Stat describes a file, or the target of a link within the folder.
func (f Folder) Stat(name string) (fi fs.FileInfo, err error) {
	err = f.Do(func(root *os.Root) error {
		fi, err = root.Stat(filepath.FromSlash(name))
		return err
	})
	return fi, err
}

// Lstat describes a file or a link.
func (f Folder) Lstat(name string) (fi fs.FileInfo, err error) {
	err = f.Do(func(root *os.Root) error {
		fi, err = root.Lstat(filepath.FromSlash(name))
		return err
	})
	return fi, err
}

// Has reports whether a name leads to something within the folder.
func (f Folder) Has(name string) bool {
	_, err := f.Stat(name)
	return err == nil
}

// ReadDir lists a folder in the order of its names.
func (f Folder) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = f.Do(func(root *os.Root) error {
		entries, err = readDir(root, filepath.FromSlash(name))
		return err
	})
	return entries, err
}

func readDir(root *os.Root, name string) ([]fs.DirEntry, error) {
	if fi, err := root.Stat(name); err != nil {
		return nil, err
	} else if !fi.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	return fs.ReadDir(root.FS(), filepath.ToSlash(name))
}

// Walk visits what is below a folder, as fs.WalkDir does, with names relative to f that use slashes. Links are visited
// and not followed.
func (f Folder) Walk(name string, visit fs.WalkDirFunc) error {
	return f.Do(func(root *os.Root) error { return f.walk(root, name, visit) })
}

func (f Folder) walk(root *os.Root, name string, visit fs.WalkDirFunc) error {
	return fs.WalkDir(root.FS(), name, func(at string, e fs.DirEntry, err error) error {
		depth := 0
		for i := range len(at) {
			if at[i] == '/' {
				depth++
			}
		}
		if depth > MaxDepth {
			return &UnsafeError{Path: f.Path(at[:min(len(at), 100)]) + "…",
				Why: fmt.Sprintf("more than %d folders are below each other", MaxDepth)}
		}
		return visit(at, e, err)
	})
}

// Path returns the path of a name, for messages and for other programs. It is not a permission to open it.
func (f Folder) Path(name string) string { return filepath.Join(f.Root, filepath.FromSlash(name)) }

// Rel returns the name of a path below the folder; false if it is not below it.
func (f Folder) Rel(path string) (string, bool) {
	name, err := filepath.Rel(f.Root, path)
	return name, err == nil && name != "." && filepath.IsLocal(name)
}

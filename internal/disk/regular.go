package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// KindError means that a name is not what may be opened, such as a regular file of this user.
type KindError struct {
	Name string
	Kind string // "a named pipe"
}

func (e *KindError) Error() string { return e.Name + " is " + e.Kind }

var kinds = map[fs.FileMode]string{0: "a file", fs.ModeDir: "a directory", fs.ModeSymlink: "a symlink",
	fs.ModeNamedPipe: "a named pipe", fs.ModeSocket: "a socket"}

// Kind describes the type of a file.
func Kind(mode fs.FileMode) string { return cmp.Or(kinds[mode.Type()], "a device") }

// OpenIn opens a regular file of this user below root for reading. A symlink is followed within root only. The error is
// a [KindError], fs.ErrNotExist or another error of the host.
func OpenIn(root *os.Root, name string) (*os.File, error) { return openMine(root, name, os.O_RDONLY) }

// OpenFile opens a regular file of this user for reading. A symlink is an error.
func OpenFile(path string) (*os.File, error) { return openMine(host{}, path, syscall.O_NOFOLLOW) }

func openMine(in files, name string, flag int) (*os.File, error) {
	if err := irregular(in, name, flag); err != nil { // a device may act when it is opened
		return nil, err
	}
	return openRegular(in, name, flag, 0, func(fi fs.FileInfo) error {
		if owner := otherOwner(fi); owner != "" {
			return &KindError{name, "a file of the user " + owner}
		}
		return nil
	})
}

func irregular(in files, name string, flag int) error {
	stat := in.Stat
	if flag&syscall.O_NOFOLLOW != 0 {
		stat = in.Lstat
	}
	if fi, err := stat(name); err == nil && !fi.Mode().IsRegular() {
		return &KindError{name, Kind(fi.Mode())}
	}
	return nil
}

// openRegular opens a regular file that is accepted.
func openRegular(in files, name string, flag int, perm fs.FileMode, accept func(fs.FileInfo) error) (*os.File, error) {
	f, err := in.OpenFile(name, flag|syscall.O_NONBLOCK|syscall.O_NOCTTY, perm)
	if err != nil {
		return nil, cmp.Or(irregular(in, name, flag), err)
	}
	if flag&os.O_EXCL != 0 {
		return f, nil // it is new
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &KindError{name, Kind(fi.Mode())}
	}
	if err == nil {
		err = accept(fi)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadFile reads a regular file of at most limit bytes, as [OpenFile] opens it.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	return readAll(f, limit)
}

// readAll reads and closes a file. What is appended meanwhile is left out.
func readAll(f *os.File, limit int64) ([]byte, error) {
	defer Close(f)
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if fi.Size() > limit {
		return nil, tooLarge(f.Name(), limit)
	}
	raw := make([]byte, fi.Size())
	n, err := io.ReadFull(f, raw)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // another process truncated it
	}
	return raw[:n], err
}

func tooLarge(name string, limit int64) error {
	return &KindError{name, fmt.Sprintf("larger than %d bytes", limit)}
}

// Close closes a file that was open for reading only. It returns no error, because nothing was written.
func Close(f *os.File) {
	if err := f.Close(); err != nil {
		return
	}
}

// RemoveAll is os.RemoveAll, which waits for a pipe above the path: then there is nothing to remove. It also removes
// folders that lack permissions.
func RemoveAll(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(RemoveAllIn(root, filepath.Base(path)), root.Close())
}

// RemoveAllIn is [RemoveAll] below root.
func RemoveAllIn(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	err = fs.WalkDir(root.FS(), name, func(at string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = root.Chmod(at, 0o700)
		}
		return err
	})
	return errors.Join(err, root.RemoveAll(name))
}

// WriteFile replaces whatever has the name by a regular file, which appears whole. It is not synced.
func WriteFile(path string, data []byte) error {
	if fi, err := os.Lstat(path); err == nil && fi.IsDir() {
		if err := RemoveAll(path); err != nil {
			return err
		}
	}
	return Disk{}.WriteAll([]File{{Path: path, Data: data, Perm: 0o600, Unsynced: true}})
}

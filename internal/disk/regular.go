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

// KindError means that a name is not a regular file of this user.
type KindError struct {
	Name string
	Kind string // "a named pipe"
}

func (e *KindError) Error() string { return e.Name + " is " + e.Kind }

// OpenIn opens a regular file below root for reading. A symlink is followed within root only. The error is a
// [KindError], fs.ErrNotExist or another error of the host.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	// a device may act when it is opened
	if info, err := root.Stat(name); err != nil {
		return nil, err
	} else if err := check(name, info); err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	return accept(name, f, err)
}

// OpenFile opens a regular file for reading. A symlink is an error.
func OpenFile(path string) (*os.File, error) {
	if info, err := os.Lstat(path); err != nil {
		return nil, err
	} else if err := check(filepath.Base(path), info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	return accept(filepath.Base(path), f, err)
}

// accept checks what was opened: it may have been replaced since it was inspected.
func accept(name string, f *os.File, err error) (*os.File, error) {
	if errors.Is(err, syscall.ENXIO) {
		return nil, &KindError{name, "a named pipe or socket"}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = check(name, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func check(name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return &KindError{name, Kind(info.Mode())}
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return &KindError{name, fmt.Sprintf("a file of another user (uid %d)", st.Uid)}
	}
	return nil
}

// Kind describes the type of a file.
func Kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a file"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSymlink != 0:
		return "a symlink"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	default:
		return "a device"
	}
}

// ReadFile reads a regular file of at most limit bytes.
func ReadFile(path string, limit int64) (data []byte, err error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	data, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, &KindError{filepath.Base(path), fmt.Sprintf("larger than %d bytes", limit)}
	}
	return data, nil
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
	if err := root.Chmod(name, 0o700); err != nil {
		return err
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	err = errors.Join(err, f.Close())
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, RemoveAllIn(root, filepath.Join(name, e.Name())))
		}
	}
	return errors.Join(err, root.RemoveAll(name))
}

// WriteFile replaces whatever has the name by a regular file, which appears whole. It is not synced. The temporary
// name is path with the suffix .new.
func WriteFile(path string, data []byte) error {
	temp := path + ".new"
	if err := RemoveAll(temp); err != nil {
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return os.Rename(temp, path)
}

package repo

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/durable"
)

// backup is a copy of some files of a checkout for restoring them. It is on disk before anything is changed.
type backup struct {
	root  string
	dir   string // copies and list
	files []savedFile
	// absent are missing parent folders, deepest last.
	absent []string
	made   []string // ids of the contents after the patch
}

// savedFile is the state of one path.
type savedFile struct {
	path   string // absolute
	absent bool
	mode   fs.FileMode
	time   time.Time
	link   string // target of a symbolic link
	copied string // path of the copy of a regular file
}

// save copies the files at these paths, which may be absent, into dir. Folders are only recorded.
func save(root, dir string, paths, made []string) (*backup, error) {
	if err := (durable.Disk{}).Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	b := &backup{root: root, dir: dir, made: made}
	for i, p := range paths {
		if err := b.add(p, filepath.Join(dir, strconv.Itoa(i))); err != nil {
			return nil, errors.Join(err, b.drop())
		}
	}
	if err := b.writeList(); err != nil {
		return nil, errors.Join(err, b.drop())
	}
	return b, nil
}

func (b *backup) add(path, copied string) error {
	if !filepath.IsLocal(path) {
		return fmt.Errorf("path %q is not in the checkout", path)
	}
	f := savedFile{path: filepath.Join(b.root, path)}
	info, err := os.Lstat(f.path)
	switch {
	case isAbsent(err):
		f.absent = true
		b.noteFolders(filepath.Dir(f.path))
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		f.mode = info.Mode()
		if f.link, err = os.Readlink(f.path); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		f.mode, f.time, f.copied = info.Mode(), info.ModTime(), copied
		content, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		if err := (durable.Disk{}).WriteFile(copied, content, 0o600); err != nil {
			return err
		}
	default:
		f.mode = info.Mode()
	}
	b.files = append(b.files, f)
	return nil
}

func (b *backup) noteFolders(dir string) {
	if _, err := os.Lstat(dir); dir == b.root || err == nil {
		return
	}
	b.noteFolders(filepath.Dir(dir))
	b.absent = append(b.absent, dir)
}

// drop removes the backup. The list is removed first: without it the backup is invalid.
func (b *backup) drop() error {
	if err := os.Remove(filepath.Join(b.dir, listFile)); err != nil && !isAbsent(err) {
		return err
	}
	return os.RemoveAll(b.dir)
}

// restoreAfter restores everything after a failure, which it returns. If that fails, the error names the copies.
func (b *backup) restoreAfter(failure error) error {
	if err := b.restore(); err != nil {
		return fmt.Errorf("%w; restore the files: %w; copies are in %s", failure, err, b.dir)
	}
	return errors.Join(asRefused(failure), b.drop())
}

func (b *backup) restore() error {
	var failed []error
	for _, f := range b.files { // new files first: one may replace a folder
		if f.absent {
			failed = append(failed, remove(f.path))
		}
	}
	for i := len(b.absent) - 1; i >= 0; i-- {
		failed = append(failed, removeFolder(b.absent[i]))
	}
	for _, f := range b.files {
		if !f.absent {
			failed = append(failed, f.restore())
		}
	}
	return errors.Join(failed...)
}

// removeFolder removes a folder if it is empty.
func removeFolder(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) ||
		errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// remove removes a file or link, if it exists.
func remove(path string) error {
	if err := os.Remove(path); !isAbsent(err) {
		return err
	}
	return nil
}

// restore restores a path if it has changed.
func (f savedFile) restore() error {
	same, err := f.unchanged()
	if err != nil || same {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o777); err != nil { // git removes empty folders
		return err
	}
	switch {
	case f.mode.IsDir():
		return os.MkdirAll(f.path, 0o777)
	case f.link != "":
		if err := remove(f.path); err != nil {
			return err
		}
		return os.Symlink(f.link, f.path)
	}
	return f.rewrite()
}

func (f savedFile) unchanged() (bool, error) {
	info, err := os.Lstat(f.path)
	if isAbsent(err) {
		return false, nil
	}
	if err != nil || info.Mode() != f.mode {
		return false, err
	}
	switch {
	case f.link != "":
		link, err := os.Readlink(f.path)
		return link == f.link, err
	case f.copied == "":
		return true, nil
	}
	now, err := os.ReadFile(f.path)
	if err != nil {
		return false, err
	}
	was, err := os.ReadFile(f.copied)
	return bytes.Equal(now, was), err
}

func (f savedFile) rewrite() error {
	content, err := os.ReadFile(f.copied)
	if err != nil {
		return err
	}
	if err := remove(f.path); err != nil {
		return err
	}
	if err := os.WriteFile(f.path, content, f.mode.Perm()); err != nil {
		return err
	}
	if err := os.Chmod(f.path, f.mode.Perm()); err != nil {
		return err
	}
	return os.Chtimes(f.path, f.time, f.time)
}

// isAbsent reports whether a path does not exist, also because a parent is a file.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Rename renames a file or a folder within one file system. On return the new name is on disk and the old one is
// removed from it. The content must be on disk already.
func (d Disk) Rename(from, to string) error {
	if err := d.rename(from, to); err != nil {
		return fmt.Errorf("rename %s to %s: %w", from, to, err)
	}
	err := d.syncFolder(filepath.Dir(to))
	if filepath.Dir(from) != filepath.Dir(to) {
		err = errors.Join(err, d.syncFolder(filepath.Dir(from)))
	}
	if err != nil {
		return fmt.Errorf("rename %s to %s: %w", from, to, err)
	}
	return nil
}

// Remove removes a file. After a power failure it may exist again.
func (d Disk) Remove(path string) error { return d.remove(path) }

// CutTail moves the content of a file from offset on into the file at to. On return that file is on disk with those
// bytes and the first one ends at offset. After an error or a crash the tail is still at the end of the first file,
// complete in the other, or both; a repeated call finishes the work. If the other contains other data, the error is of
// kind fs.ErrExist and nothing is truncated. A file that ends at offset stays unchanged.
func (d Disk) CutTail(path string, offset int64, to string) error {
	if err := d.cutTail(path, offset, to); err != nil {
		return fmt.Errorf("move the end of %s from %d on to %s: %w", path, offset, to, err)
	}
	return nil
}

func (d Disk) cutTail(path string, offset int64, to string) error {
	all, err := d.readFile(path)
	if err != nil {
		return err
	}
	if int64(len(all)) < offset {
		return &ErrShort{Path: path, Size: int64(len(all)), Offset: offset}
	}
	if int64(len(all)) == offset {
		return nil
	}
	if err := d.keepTail(to, all[offset:]); err != nil {
		return err
	}
	f, err := d.open(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = d.truncate(f, offset)
	if err == nil {
		err = d.sync(f)
	}
	return errors.Join(err, f.Close())
}

// keepTail creates the file, or finds it with the same content.
func (d Disk) keepTail(path string, tail []byte) error {
	created, err := d.CreateExclusive(path, tail, 0o600)
	if err != nil || created {
		return err
	}
	there, err := d.readFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(there, tail) {
		return fmt.Errorf("other data exists: %w", fs.ErrExist)
	}
	return nil
}

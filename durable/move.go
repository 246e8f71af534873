package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Rename gives a file or a folder another name on the same file system. On
// return the new name is on disk and the old one is gone from it. What the file
// or the folder holds must be on disk already.
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

// Remove removes a file. After a power cut it may be there again.
func (d Disk) Remove(path string) error { return d.remove(path) }

// CutTail moves what a file holds from offset on into a file of its own, aside.
// On return that file is on disk with those bytes and the first one ends at
// offset. After an error or a crash the tail is still at the end of the file,
// or whole in aside, or both; the same call finishes the work. An aside file
// that holds something else is an error of kind fs.ErrExist, and nothing is
// cut. A file that ends at offset is left alone.
func (d Disk) CutTail(path string, offset int64, aside string) error {
	if err := d.cutTail(path, offset, aside); err != nil {
		return fmt.Errorf("move the end of %s from %d on to %s: %w", path, offset, aside, err)
	}
	return nil
}

func (d Disk) cutTail(path string, offset int64, aside string) error {
	all, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if int64(len(all)) < offset {
		return &ErrShort{Path: path, Size: int64(len(all)), Offset: offset}
	}
	if int64(len(all)) == offset {
		return nil
	}
	if err := d.keepAside(aside, all[offset:]); err != nil {
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

// keepAside creates the file, or finds it with the same content.
func (d Disk) keepAside(path string, tail []byte) error {
	created, err := d.CreateExclusive(path, tail, 0o600)
	if err != nil || created {
		return err
	}
	there, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(there, tail) {
		return fmt.Errorf("something else is there: %w", fs.ErrExist)
	}
	return nil
}

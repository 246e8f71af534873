package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Exchange gives two files or folders of one file system each other's names. On return both names are on disk. Where the system can do it at
// once, neither is ever missing; elsewhere it takes three renames by way of spare, a free name, and a crash leaves what had the name b there.
// What they hold must be on disk already.
func (d Disk) Exchange(a, b, spare string) error {
	if err := d.exchange(a, b, spare); err != nil {
		return fmt.Errorf("exchange %s and %s: %w", a, b, err)
	}
	return nil
}

func (d Disk) exchange(a, b, spare string) error {
	err := d.before(OpExchange, b)
	if err == nil {
		err = exchange(a, b)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = d.byWayOf(a, b, spare)
	}
	return errors.Join(err, d.syncFolder(filepath.Dir(a)), d.syncFolder(filepath.Dir(b)))
}

func (d Disk) byWayOf(a, b, spare string) error {
	for _, step := range [][2]string{{b, spare}, {a, b}, {spare, a}} {
		if err := d.rename(step[0], step[1]); err != nil {
			return err
		}
	}
	return nil
}

// SettleTree makes everything in a folder durable as it is; the folder's own name is not meant.
func (d Disk) SettleTree(root string) error {
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return d.syncFolder(path)
		case !e.Type().IsRegular():
			return nil
		}
		return d.syncFile(path)
	})
	if err != nil {
		return fmt.Errorf("make %s durable: %w", root, err)
	}
	return nil
}

func (d Disk) syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.sync(f), f.Close())
}

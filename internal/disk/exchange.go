package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Exchange swaps the names of two files or folders of one file system, whose contents must be on disk. On return both
// names are on disk. If the system swaps names atomically, neither is ever missing. Otherwise three renames through
// spare, a free name, do it, and a crash leaves the former content of b there.
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

// SettleTree makes everything in a folder durable as it is, except for the name of the folder.
func (d Disk) SettleTree(root string) error {
	err := d.walk(root, func(path string, e fs.DirEntry, err error) error {
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
	f, err := d.openFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.sync(f), f.Close())
}

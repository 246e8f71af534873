package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// SettleAll makes the folder at dir and everything in it durable. It skips files that this user cannot read.
func (d Disk) SettleAll(dir string) error {
	var files, folders []string
	err := d.walk(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			folders = append(folders, path)
		case e.Type().IsRegular():
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("make %s durable: %w", dir, err)
	}
	const atOnce = 64
	for some := range slices.Chunk(files, atOnce) {
		err = errors.Join(err, d.settleSome(some))
	}
	for some := range slices.Chunk(folders, atOnce) {
		err = errors.Join(append(d.syncFolders(some), err)...)
	}
	if err != nil {
		return fmt.Errorf("make %s durable: %w", dir, err)
	}
	return nil
}

func (d Disk) settleSome(paths []string) error {
	var open []*os.File
	var errs []error
	for _, path := range paths {
		f, err := d.openFile(path, os.O_RDONLY, 0)
		switch {
		case err == nil:
			open = append(open, f)
		case !errors.Is(err, fs.ErrPermission):
			errs = append(errs, err)
		}
	}
	errs = append(errs, d.syncAll(open)...)
	for _, f := range open {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

package disk

import (
	"errors"
	"path/filepath"
)

// Rename renames a file or a folder within one file system. On return the new name is on disk and the old one is
// removed from it. The content must be on disk already.
func (d Disk) Rename(from, to string) error {
	return explain(d.both(from, to, func() error { return d.rename(from, to) }), "rename", from)
}

// both makes two names durable that are changed.
func (d Disk) both(a, b string, change func() error) error {
	return d.named(func(n *Names) error {
		n.add(a, true)
		n.add(b, true)
		return change()
	})
}

// Exchange swaps the names of two files or folders of one file system, whose contents must be on disk. On return both
// names are on disk. If the system swaps names atomically, neither is ever missing. Otherwise three renames through
// spare, a free name, do it, and a crash leaves the former content of b there.
func (d Disk) Exchange(a, b, spare string) error {
	return explain(d.both(a, b, func() error {
		err := d.step(Step{Op: OpExchange, Path: b})
		if err == nil {
			err = exchange(a, b)
		}
		if errors.Is(err, errors.ErrUnsupported) {
			err = d.byWayOf(a, b, spare)
		}
		return err
	}), "exchange", b)
}

func (d Disk) byWayOf(a, b, spare string) error {
	for _, step := range [][2]string{{b, spare}, {a, b}, {spare, a}} {
		if err := d.rename(step[0], step[1]); err != nil {
			return err
		}
	}
	return nil
}

// SettleAll makes the folder at dir and everything in it durable. It skips what this user cannot read.
func (d Disk) SettleAll(dir string) error { return explain(d.settleAll(dir), "make durable", dir) }

func (d Disk) settleAll(dir string) error {
	entries, err := d.entries(dir)
	if err != nil {
		return err
	}
	var files []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			err = errors.Join(err, d.settleAll(path))
		case e.Type().IsRegular():
			files = append(files, path)
		}
	}
	readable := map[string]bool{}
	return errors.Join(err, d.sync(OpSync, files, readable), d.sync(OpSyncFolder, []string{dir}, readable))
}

// SyncFileSystem makes everything durable that was written to the file system of a folder, by anyone. It is one call
// for any number of files. Where the system cannot do this, the folder and everything in it are synced.
func (d Disk) SyncFileSystem(folder string) error {
	err := d.step(Step{Op: OpSyncSystem, Path: folder})
	if err == nil {
		err = d.look(folder, syncSystem)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = d.settleAll(folder)
	}
	return explain(err, "make what was written durable in", folder)
}

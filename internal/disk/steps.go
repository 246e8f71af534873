package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// Torn is an error that a hook returns before a write: the first Bytes bytes reach the file and the write fails, as
// on a full disk.
type Torn struct{ Bytes int }

func (t Torn) Error() string { return fmt.Sprintf("the write stopped after %d bytes", t.Bytes) }

// BeforeRead is to be called before a file of a store is read.
func (d Disk) BeforeRead(path string) error {
	if d.Reads == nil {
		return nil
	}
	if err := d.Reads(path); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func (d Disk) before(op Op, path string) error { return d.step(Step{Op: op, Path: path}) }

func (d Disk) step(s Step) error {
	if d.Hook == nil {
		return nil
	}
	if err := d.Hook(s); err != nil {
		return fmt.Errorf("%s %s: %w", s.Op, s.Path, err)
	}
	return nil
}

func (d Disk) mkdir(path string, perm fs.FileMode) error {
	if err := d.before(OpMkdir, path); err != nil {
		return err
	}
	return d.on(path, func(root *os.Root, name string) error { return root.Mkdir(name, perm) },
		func() error { return os.Mkdir(path, perm) })
}

func (d Disk) open(path string, flag int, perm fs.FileMode) (*os.File, error) {
	if err := d.before(OpCreate, path); err != nil {
		return nil, err
	}
	return d.openFile(path, flag, perm)
}

func (d Disk) write(f *os.File, data []byte) (int, error) {
	err := d.step(Step{Op: OpWrite, Path: f.Name(), Data: data})
	if torn := (Torn{}); errors.As(err, &torn) {
		n, werr := f.Write(data[:min(torn.Bytes, len(data))])
		return n, errors.Join(err, werr)
	}
	if err != nil {
		return 0, err
	}
	return f.Write(data)
}

func (d Disk) sync(f *os.File) error {
	if err := d.before(OpSync, f.Name()); err != nil {
		return err
	}
	return f.Sync()
}

func (d Disk) rename(from, to string) error {
	if err := d.before(OpRename, to); err != nil {
		return err
	}
	return d.pair(from, to, (*os.Root).Rename, os.Rename)
}

func (d Disk) link(from, to string) error {
	if err := d.before(OpLink, to); err != nil {
		return err
	}
	return d.pair(from, to, (*os.Root).Link, os.Link)
}

func (d Disk) remove(path string) error {
	if err := d.before(OpRemove, path); err != nil {
		return err
	}
	return d.on(path, func(root *os.Root, name string) error { return root.Remove(name) },
		func() error { return os.Remove(path) })
}

func (d Disk) truncate(f *os.File, size int64) error {
	if err := d.before(OpTruncate, f.Name()); err != nil {
		return err
	}
	return f.Truncate(size)
}

// syncFolder makes the names in a folder durable.
func (d Disk) syncFolder(path string) error {
	if err := d.before(OpSyncFolder, path); err != nil {
		return err
	}
	f, err := d.openFolder(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncAll makes files durable. The steps come in order, and the waits for the disk overlap. It returns an error for
// each file.
func (d Disk) syncAll(files []*os.File) []error {
	return d.overlap(OpSync, len(files), func(i int) string { return files[i].Name() },
		func(i int) error { return files[i].Sync() })
}

// syncFolders makes the names in folders durable, as syncAll does files.
func (d Disk) syncFolders(paths []string) []error {
	return d.overlap(OpSyncFolder, len(paths), func(i int) string { return paths[i] },
		func(i int) error { return (Disk{within: d.within}).syncFolder(paths[i]) })
}

// overlap announces n steps in order and runs them concurrently.
func (d Disk) overlap(op Op, n int, path func(int) string, do func(int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		if errs[i] = d.before(op, path(i)); errs[i] == nil {
			all.Go(func() { errs[i] = do(i) })
		}
	}
	all.Wait()
	return errs
}

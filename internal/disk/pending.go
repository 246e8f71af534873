package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Pending is a file that is being written under a temporary name beside its path. It appears at its path only with
// [Pending.Commit]. It is not safe for concurrent use.
type Pending struct {
	disk Disk
	path string
	file *os.File
	done bool
}

// Create creates an empty temporary file for path, whose folder must exist. The umask applies to perm.
func (d Disk) Create(path string, perm fs.FileMode) (*Pending, error) {
	f, err := d.open(tempName(path), os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return &Pending{disk: d, path: path, file: f}, nil
}

// Write appends to the temporary file.
func (p *Pending) Write(data []byte) (int, error) { return p.disk.write(p.file, data) }

// Discard removes the temporary file unless it was committed.
func (p *Pending) Discard() {
	if p.done {
		return
	}
	p.done = true
	if err := errors.Join(p.file.Close(), p.disk.remove(p.file.Name())); err != nil {
		return // CleanTemps removes a file that stays; no reader uses it
	}
}

// Commit moves the file to its path and replaces an existing one. On return the new content and its name are on disk.
// After an error the path has either the old or the new content, complete.
func (p *Pending) Commit() error {
	if err := p.settle(); err != nil {
		return err
	}
	if err := p.replace(); err != nil {
		return err
	}
	return p.syncName()
}

// link moves the file to its path if nothing exists there, and reports whether it did. Its name is not on disk yet.
// The temporary file is removed.
func (p *Pending) link(synced bool) (created bool, err error) {
	if synced {
		err = p.settle()
	} else if err = p.file.Close(); err != nil {
		p.Discard()
	}
	if err != nil {
		return false, err
	}
	err = p.disk.link(p.file.Name(), p.path)
	p.Discard()
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return false, fmt.Errorf("create %s: %w", p.path, err)
	}
	return err == nil, nil
}

// settle makes the temporary file durable.
func (p *Pending) settle() error {
	if err := errors.Join(p.disk.sync(p.file), p.file.Close()); err != nil {
		p.Discard()
		return fmt.Errorf("write %s: %w", p.path, err)
	}
	return nil
}

func (p *Pending) replace() error {
	if err := p.disk.rename(p.file.Name(), p.path); err != nil {
		p.Discard()
		return fmt.Errorf("write %s: %w", p.path, err)
	}
	p.done = true
	return nil
}

func (p *Pending) syncName() error {
	if err := p.disk.syncFolder(filepath.Dir(p.path)); err != nil {
		return fmt.Errorf("write %s: it is written, but its name may not survive a power failure: %w", p.path, err)
	}
	return nil
}

// readBack returns the content of the temporary file, and one byte more than size if it is longer.
func (p *Pending) readBack(size int) ([]byte, error) {
	if err := p.disk.before(OpReadBack, p.file.Name()); err != nil {
		return nil, err
	}
	back := make([]byte, size+1)
	n, err := p.file.ReadAt(back, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return back[:n], err
}

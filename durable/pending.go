package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Pending is a file that is being written under a temporary name beside its
// path. Nobody sees it at its path before [Pending.Commit]. It is for one
// goroutine.
type Pending struct {
	disk Disk
	path string
	file *os.File
	done bool
}

// Create starts a file that will stand at path. The folder must be there.
// Perm is cut by the umask. On return there is an empty temporary file.
func (d Disk) Create(path string, perm fs.FileMode) (*Pending, error) {
	f, err := d.open(tempName(path), os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return &Pending{disk: d, path: path, file: f}, nil
}

// Write adds to the temporary file.
func (p *Pending) Write(data []byte) (int, error) { return p.disk.write(p.file, data) }

// Discard removes the temporary file, unless the file was committed.
func (p *Pending) Discard() {
	if p.done {
		return
	}
	p.done = true
	if err := errors.Join(p.file.Close(), p.disk.remove(p.file.Name())); err != nil {
		return // it is no file that anybody reads, and one that stays is removed by CleanTemps
	}
}

// Commit puts the file at its path, over what was there. On return the new
// content and its name are on disk. After an error the path holds the old
// content or the new one, whole.
func (p *Pending) Commit() error {
	if err := p.settle(); err != nil {
		return err
	}
	if err := p.replace(); err != nil {
		return err
	}
	return p.syncName()
}

// link puts the file at its path if nothing is there, and says whether it did.
// Its name is not on disk yet. The temporary file is gone.
func (p *Pending) link() (created bool, err error) {
	if err := p.settle(); err != nil {
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
		return fmt.Errorf("write %s: it is written, but its name may not survive a power cut: %w", p.path, err)
	}
	return nil
}

// readBack gives what the temporary file holds, and one byte more than size if
// there is more.
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

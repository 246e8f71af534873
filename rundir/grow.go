package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/passbook-run/passbook/durable"
)

// growAll adds what a batch gives to the growing files, behind what meta.json says is committed.
func (p *projector) growAll(l *logbook) error {
	if l.err != nil {
		return l.err
	}
	if err := p.dir.Disk.Mkdir(p.dir.Path(logsDir), dirPerm); err != nil {
		return err
	}
	for _, file := range growing() {
		data := l.added[file]
		mark := p.mark(file)
		if len(data) == 0 && mark.Seq > 0 {
			p.setMark(DerivedMark{File: file, Size: mark.Size, Seq: p.last})
			continue
		}
		size, err := p.grow(file, mark.Size, data)
		if err != nil {
			return fmt.Errorf("append to %s: %w", p.dir.Path(file), err)
		}
		p.setMark(DerivedMark{File: file, Size: size, Seq: p.last})
	}
	return p.linkSpend()
}

// linkSpend names the cost log as requirement 004 does. The link is relative, so the directory can be moved.
func (p *projector) linkSpend() error {
	err := os.Symlink(filepath.FromSlash(CostLog), p.dir.Path(SpendFile))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (p *projector) mark(file string) DerivedMark {
	for _, m := range p.meta.Derived {
		if m.File == file {
			return m
		}
	}
	return DerivedMark{File: file}
}

func (p *projector) setMark(m DerivedMark) {
	for i := range p.meta.Derived {
		if p.meta.Derived[i].File == m.File {
			p.meta.Derived[i] = m
			return
		}
	}
	p.meta.Derived = append(p.meta.Derived, m)
}

// grow makes a file hold data behind offset. Lines that are there already, from a write that was cut off, are kept; so is everything that
// somebody else wrote, which loses at most its own unterminated line the property of being the last.
func (p *projector) grow(file string, offset int64, data []byte) (int64, error) {
	_, err := p.dir.Disk.Append(p.dir.Path(file), offset, data, filePerm)
	var differs *durable.ErrDiffers
	var short *durable.ErrShort
	if err == nil {
		return offset + int64(len(data)), nil // what somebody else wrote behind it is looked at with the next batch
	}
	if !errors.As(err, &differs) && !errors.As(err, &short) {
		return 0, err
	}
	have, err := os.ReadFile(p.dir.Path(file))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	tail := have[min(offset, int64(len(have))):]
	return p.dir.Disk.Append(p.dir.Path(file), int64(len(have)), lacking(tail, data), filePerm)
}

// lacking gives what is to be added to a file that ends in tail, so that it holds every line of data, in order, between whatever else is there.
func lacking(tail, data []byte) []byte {
	for len(tail) > 0 {
		line, rest, whole := bytes.Cut(tail, []byte{'\n'})
		next, after, _ := bytes.Cut(data, []byte{'\n'})
		switch {
		case len(data) > 0 && whole && bytes.Equal(line, next):
			data = after
		case !whole && len(data) > 0 && bytes.HasPrefix(append(bytes.Clone(next), '\n'), line):
			return data[len(line):] // one of ours that was cut off
		case !whole:
			return append([]byte{'\n'}, data...) // somebody else's: it ends here
		}
		tail = rest
	}
	return data
}

// shrunk says that a growing file is shorter than meta.json says: then everything derived is made again.
func (p *projector) shrunk() bool {
	for _, m := range p.meta.Derived {
		fi, err := os.Stat(p.dir.Path(m.File))
		if err != nil && m.Size > 0 || err == nil && fi.Size() < m.Size {
			return true
		}
	}
	return false
}

package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/durable"
)

// growAll adds what a batch gives to the growing files, behind what meta.json says is committed.
func (p *projector) growAll(l *logbook) error {
	if l.err != nil {
		return l.err
	}
	if err := p.makeLogs(); err != nil {
		return err
	}
	var files []string
	var all []durable.Addition
	for _, file := range growing() {
		mark := p.mark(file)
		if len(l.added[file]) == 0 && mark.Seq > 0 {
			p.setMark(DerivedMark{File: file, Size: mark.Size, Seq: p.last, Chain: mark.Chain})
			continue
		}
		if p.anew && mark.Size == 0 {
			if err := p.setLogAside(file, l.added[file]); err != nil {
				return err
			}
		}
		files, all = append(files, file), append(all, durable.Addition{Path: p.dir.Path(file), Offset: mark.Size, Data: l.added[file], Perm: filePerm})
	}
	sizes, err := p.appendAll(all)
	for i, size := range sizes {
		mark, cerr := p.grown(files[i], all[i], size)
		if cerr != nil {
			return cerr
		}
		p.setMark(mark)
	}
	return errors.Join(err, p.linkSpend())
}

// grown is the mark of a file after an addition. The chain costs what was added, and is not begun behind lines that nothing has vouched for.
func (p *projector) grown(file string, a durable.Addition, size int64) (DerivedMark, error) {
	before := p.mark(file)
	mark := DerivedMark{File: file, Size: size, Seq: p.last, Chain: before.Chain}
	if before.Chain == "" && before.Size > 0 {
		return mark, nil
	}
	added := a.Data
	if size != a.Offset+int64(len(a.Data)) { // other lines are between ours: what counts is what the file holds
		raw, err := os.ReadFile(a.Path)
		if err != nil {
			return mark, err
		}
		added = raw[min(a.Offset, int64(len(raw))):min(size, int64(len(raw)))]
	}
	mark.Chain = mark.Chain.Over(split(added, 0).lines)
	return mark, nil
}

// setLogAside moves a growing file that is made from the first event on out of the way, unless it is the beginning of what it is to hold: lines of it were
// changed, or are not the run's. It stays in the directory.
func (p *projector) setLogAside(file string, whole []byte) error {
	have, err := p.dir.readRaw(file)
	if err != nil || bytes.HasPrefix(whole, have) {
		return err
	}
	if err := p.dir.Disk.Mkdir(p.dir.Path(tornDir), dirPerm); err != nil {
		return err
	}
	ext := path.Ext(file)
	name := strings.TrimSuffix(path.Base(file), ext) + "-damaged-" + digest(have)[:8] + ext
	return p.dir.Disk.Rename(p.dir.Path(file), p.dir.Path(path.Join(tornDir, name)))
}

// makeLogs makes the folder of the logs. A meta.json that speaks of them says that it was made, and is on disk.
func (p *projector) makeLogs() error {
	if p.mark(TextLog).Seq > 0 {
		return nil
	}
	return p.dir.Disk.Mkdir(p.dir.Path(logsDir), dirPerm)
}

// appendAll adds to all files at the same time; where one of them does not hold what is expected, to one after the other. It gives up to where
// our lines go now.
func (p *projector) appendAll(all []durable.Addition) ([]int64, error) {
	_, err := p.dir.Disk.AppendAll(all)
	if err != nil && !unexpected(err) {
		return nil, err
	}
	sizes := make([]int64, len(all))
	for i, a := range all {
		sizes[i] = a.Offset + int64(len(a.Data))
		if err == nil {
			continue
		}
		var failed error
		if sizes[i], failed = p.grow(a); failed != nil {
			return nil, fmt.Errorf("append to %s: %w", a.Path, failed)
		}
	}
	return sizes, nil
}

// unexpected says that a growing file is shorter than expected, or holds something else.
func unexpected(err error) bool {
	var differs *durable.ErrDiffers
	var short *durable.ErrShort
	return errors.As(err, &differs) || errors.As(err, &short)
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

// grow makes a file hold data behind an offset, and gives up to where our lines go now. Lines that are there already, from a write that was cut
// off, are kept; so is everything that somebody else wrote, which loses at most its own unterminated line the property of being the last.
func (p *projector) grow(a durable.Addition) (int64, error) {
	_, err := p.dir.Disk.AppendAll([]durable.Addition{a})
	if !unexpected(err) {
		return a.Offset + int64(len(a.Data)), err // what somebody else wrote behind it is looked at with the next batch
	}
	have, err := os.ReadFile(a.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	tail := have[min(a.Offset, int64(len(have))):]
	return p.dir.Disk.Append(a.Path, int64(len(have)), lacking(tail, a.Data), filePerm)
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

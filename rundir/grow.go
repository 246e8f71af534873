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
	if err := p.appendAll(all); err != nil {
		return err
	}
	for i, a := range all {
		p.setMark(p.grown(files[i], a.Data))
	}
	return p.linkSpend()
}

// grown is the mark of a file after an addition. The chain costs what was added, and is not begun behind lines that nothing has vouched for.
func (p *projector) grown(file string, added []byte) DerivedMark {
	m := p.mark(file)
	if m.Chain != "" || m.Size == 0 {
		m.Chain = m.Chain.Over(split(added, 0).lines)
	}
	m.Size, m.Seq = m.Size+int64(len(added)), p.last
	return m
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

// appendAll adds to all files at the same time; where one of them holds something else there, to one after the other.
func (p *projector) appendAll(all []durable.Addition) error {
	_, err := p.dir.Disk.AppendAll(all)
	if err == nil || !unexpected(err) {
		return err
	}
	for _, a := range all {
		_, err := p.dir.Disk.AppendAll([]durable.Addition{a})
		if unexpected(err) {
			err = p.grow(a)
		}
		if err != nil {
			return fmt.Errorf("append to %s: %w", a.Path, err)
		}
	}
	return nil
}

// unexpected says that a growing file holds something else than it should.
func unexpected(err error) bool {
	var differs *durable.ErrDiffers
	return errors.As(err, &differs)
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

// grow makes a file hold data behind an offset, where it holds something else: what stands there is no row of the run's, or one that was damaged before
// meta.json vouched for it. It is moved to a file of its own first, so that a row is there once and whole.
func (p *projector) grow(a durable.Addition) error {
	have, err := os.ReadFile(a.Path)
	if err != nil {
		return err
	}
	if err := p.dir.Disk.Mkdir(p.dir.Path(tornDir), dirPerm); err != nil {
		return err
	}
	ext := path.Ext(a.Path)
	name := fmt.Sprintf("%s-after-%d-%s%s", strings.TrimSuffix(filepath.Base(a.Path), ext), a.Offset, digest(have[min(a.Offset, int64(len(have))):])[:8], ext)
	if err := p.dir.Disk.CutTail(a.Path, a.Offset, p.dir.Path(path.Join(tornDir, name))); err != nil {
		return err
	}
	_, err = p.dir.Disk.AppendAll([]durable.Addition{a})
	return err
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

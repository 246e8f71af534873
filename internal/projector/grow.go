package projector

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/rundir"
)

// growAll appends a batch's lines to the growing files, after the size that meta.json has committed.
func (p *Projector) growAll(l *records.Logbook, defers bool) error {
	if l.Err != nil {
		return l.Err
	}
	if err := errors.Join(p.makeLogs(), p.keepStarts()); err != nil {
		return err
	}
	var files []string
	var all []disk.Addition
	for _, file := range records.Growing() {
		mark := p.mark(file)
		if len(l.Added[file]) == 0 && mark.Seq > 0 {
			p.setMark(rundir.DerivedMark{File: file, Size: mark.Size, Seq: p.last, Chain: mark.Chain})
			continue
		}
		if p.anew && mark.Size == 0 {
			if err := p.moveLog(file, l.Added[file]); err != nil {
				return err
			}
		}
		files, all = append(files, file), append(all,
			disk.Addition{Path: p.Dir.Path(file), Offset: mark.Size, Data: l.Added[file], Perm: layout.FilePerm,
				Unsynced: defers})
	}
	if err := p.appendAll(all); err != nil {
		return err
	}
	for i, a := range all {
		p.setMark(p.grown(files[i], a.Data))
	}
	return p.linkSpend()
}

// grown is the mark of a file after an addition. The cost of its chain depends on the addition only. No chain is
// started after unverified lines.
func (p *Projector) grown(file string, added []byte) rundir.DerivedMark {
	m := p.mark(file)
	if m.Chain != "" || m.Size == 0 {
		m.Chain = m.Chain.Over(journal.Split(added, 0).Lines)
	}
	m.Size, m.Seq = m.Size+int64(len(added)), p.last
	return m
}

// moveLog moves a growing file out of the way before a rebuild from the first event, unless the file is a prefix of
// the rebuilt file: then its lines were changed, or belong to another run. It stays in the directory.
func (p *Projector) moveLog(file string, whole []byte) error {
	have, err := p.Dir.ReadRaw(file)
	if err != nil || bytes.HasPrefix(whole, have) {
		return err
	}
	if err := p.Dir.Inside().Mkdir(p.Dir.Path(layout.TornDir), layout.DirPerm); err != nil {
		return err
	}
	ext := path.Ext(file)
	name := strings.TrimSuffix(path.Base(file), ext) + "-damaged-" + disk.Digest(have)[:8] + ext
	return p.Dir.Inside().Rename(p.Dir.Path(file), p.Dir.Path(path.Join(layout.TornDir, name)))
}

// makeLogs creates the folder of the logs. If meta.json mentions logs, the folder exists and is on disk.
func (p *Projector) makeLogs() error {
	if p.mark(layout.TextLog).Seq > 0 {
		return nil
	}
	return p.Dir.Inside().Mkdir(p.Dir.Path(layout.LogsDir), layout.DirPerm)
}

// appendAll appends to all files concurrently; if one of them has unexpected contents, one after the other.
func (p *Projector) appendAll(all []disk.Addition) error {
	_, err := p.Dir.Inside().AppendAll(all)
	if err == nil || !unexpected(err) {
		return err
	}
	for _, a := range all {
		_, err := p.Dir.Inside().AppendAll([]disk.Addition{a})
		if unexpected(err) {
			err = p.grow(a)
		}
		if err != nil {
			return fmt.Errorf("append to %s: %w", a.Path, err)
		}
	}
	return nil
}

// unexpected reports whether a growing file has unexpected contents.
func unexpected(err error) bool {
	return errors.Is(err, disk.ErrDiffers)
}

// linkSpend links the cost log under the name of requirement 004. The link is relative, so that the directory can be
// moved.
func (p *Projector) linkSpend() error {
	err := p.Dir.Inside().Symlink(filepath.FromSlash(layout.CostLog), p.Dir.Path(layout.SpendFile))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (p *Projector) mark(file string) rundir.DerivedMark {
	for _, m := range p.meta.Derived {
		if m.File == file {
			return m
		}
	}
	return rundir.DerivedMark{File: file}
}

func (p *Projector) setMark(m rundir.DerivedMark) {
	for i := range p.meta.Derived {
		if p.meta.Derived[i].File == m.File {
			p.meta.Derived[i] = m
			return
		}
	}
	p.meta.Derived = append(p.meta.Derived, m)
}

// grow makes a file contain data after an offset. Other contents there do not belong to the run, or were damaged before
// meta.json committed them. They are moved to a separate file first, so that each row appears exactly once and
// complete.
func (p *Projector) grow(a disk.Addition) error {
	name, _ := p.Dir.Rel(a.Path)
	have, err := p.Dir.ReadFile(name)
	if err != nil {
		return err
	}
	if err := p.Dir.Inside().Mkdir(p.Dir.Path(layout.TornDir), layout.DirPerm); err != nil {
		return err
	}
	ext := path.Ext(a.Path)
	moved := fmt.Sprintf("%s-after-%d-%s%s", strings.TrimSuffix(filepath.Base(a.Path), ext), a.Offset,
		disk.Digest(have[min(a.Offset, int64(len(have))):])[:8], ext)
	if err := p.Dir.Inside().CutTail(a.Path, a.Offset, p.Dir.Path(path.Join(layout.TornDir, moved))); err != nil {
		return err
	}
	_, err = p.Dir.Inside().AppendAll([]disk.Addition{a})
	return err
}

// shrunk reports whether a growing file is shorter than its mark in meta.json. Then everything derived is rebuilt.
func (p *Projector) shrunk() bool {
	for _, m := range p.meta.Derived {
		fi, err := p.Dir.Stat(m.File)
		if err != nil && m.Size > 0 || err == nil && fi.Size() < m.Size {
			return true
		}
	}
	return false
}

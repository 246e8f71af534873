package report

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// Contents writes the content of a file of the workspace, named by its digest.
type Contents func(digest string, to io.Writer) error

// changedFiles are the files that a pass changed.
type changedFiles struct {
	Files   []difference
	More    int    // changed files that the journal does not list with the pass
	Command string // shows all of them
}

// space is what the page has left for differences of files.
type space struct {
	lines, bytes, read int
	omitted            int // files whose differences do not fit
	missing            int // files whose contents cannot be read
	unread             error
}

// Limits of the differences of files.
const (
	maxPageDiffs = 8 << 20   // bytes of all differences
	maxPageRead  = 64 << 20  // bytes of the files that are compared
	maxDiffFile  = 512 << 10 // bytes of a file that is compared
)

func newSpace(o Options) space { return space{lines: o.Diffs, bytes: maxPageDiffs, read: maxPageRead} }

func (r *space) full() bool { return r.lines <= 0 || r.bytes <= 0 || r.read <= 0 }

func (r *space) take(d difference) {
	r.lines -= len(d.Lines)
	for _, l := range d.Lines {
		r.bytes -= len(l.Text)
	}
}

// filesOf compares the files that a pass changed, as far as there is space.
func (s source) filesOf(p view.Pass, room *space) changedFiles {
	c := changedFiles{More: max(0, p.Changed-len(p.Files))}
	if p.Turn > 0 {
		c.Command = fmt.Sprintf("starter snapshot diff %s %d", s.found.RunID, p.Turn)
	}
	for _, f := range p.Files {
		c.Files = append(c.Files, s.fileDiff(f, room))
	}
	return c
}

// fileDiff compares one file before and after a pass. Modes, renames, folders and symbolic links are only named.
func (s source) fileDiff(f run.FileChange, room *space) difference {
	d := difference{Title: f.Path, Note: f.Kind}
	if f.Old != "" {
		d.Title = f.Old + " → " + f.Path
	}
	if f.Before == f.After {
		return d
	}
	if room.full() {
		room.omitted++
		d.Missing = "Left out for the size of the page."
		return d
	}
	before, err1 := s.content(f.Before)
	after, err2 := s.content(f.After)
	room.read -= len(before) + len(after)
	switch err := cmp.Or(err1, err2); {
	case errors.Is(err, errTooBig):
		room.read -= maxDiffFile
		d.Missing = fmt.Sprintf("Not compared: it is larger than %d KB.", maxDiffFile>>10)
	case err != nil:
		room.missing++
		room.unread = cmp.Or(room.unread, err)
		d.Missing = "Its content cannot be read."
	case binary(before), binary(after):
		d.Note += fmt.Sprintf(", binary, %d → %d bytes", len(before), len(after))
	default:
		d.compare(before, after)
	}
	room.take(d)
	return d
}

// content reads a file; an empty digest is not a file.
func (s source) content(digest string) ([]byte, error) {
	if digest == "" {
		return nil, nil
	}
	if s.opt.Contents == nil {
		return nil, errors.New("the run's store cannot be read")
	}
	var to limited
	err := s.opt.Contents(digest, &to)
	return to.data.Bytes(), err
}

var errTooBig = errors.New("too big to be compared")

// limited keeps the bytes of a file that can be compared.
type limited struct{ data bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.data.Len()+len(p) > maxDiffFile {
		return 0, errTooBig
	}
	return l.data.Write(p)
}

// binary recognizes binary content as git does.
func binary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 }

// cut lists on the page which differences it lacks.
func (r *space) cut(v *page) {
	if r.omitted > 0 {
		v.leave("the differences of %s (starter snapshot diff shows them)", plural(r.omitted, "file"))
	}
	if r.missing > 0 {
		why := strings.TrimSpace(r.unread.Error())
		v.leave("the differences of %s, whose contents cannot be read: %s", plural(r.missing, "file"), why)
	}
}

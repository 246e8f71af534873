package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// stream is a part of events.jsonl.
type stream struct {
	Lines []string // complete ones, without their line feed
	Size  int64    // bytes of the file up to the last line feed
	Torn  []byte   // what follows it
}

// Files opens the files of a run directory.
type Files interface {
	OpenFile(name string) (*os.File, error)
}

// ReadStream reads a journal from an offset that is the start of a line. A missing file is empty.
func ReadStream(d Files, name string, from int64) (stream, error) {
	f, err := OpenLines(d, name, from)
	if err != nil || f.file == nil {
		return stream{}, err
	}
	defer f.Close()
	s, err := split(f.Reader, from)
	if err != nil {
		return stream{}, fmt.Errorf("read %s: %w", f.file.Name(), err)
	}
	return s, nil
}

// split reads all lines without parsing them. One that is too long for an event is empty.
func split(r *run.Reader, from int64) (stream, error) {
	s := stream{Size: from}
	for line, err := range r.RawLines() {
		if err != nil {
			return stream{}, err
		}
		s.Lines, s.Size = append(s.Lines, string(line.Bytes)), line.End
	}
	s.Torn = r.Torn()
	return s, nil
}

// LineFile is a stream of lines that is open for reading.
type LineFile struct {
	*run.Reader
	file *os.File // nil: it is missing
}

// OpenLines opens a stream at an offset that is the start of a line. A missing file is empty.
func OpenLines(d Files, name string, from int64) (*LineFile, error) {
	f, err := d.OpenFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &LineFile{run.NewReader(bytes.NewReader(nil), from), nil}, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", f.Name(), err), f.Close())
	}
	return &LineFile{run.NewReader(f, from), f}, nil
}

// Close closes the file.
func (f *LineFile) Close() {
	if f.file == nil {
		return
	}
	disk.Close(f.file)
}

// LineEnds reports whether the stream has that many bytes and a line ends with them.
func LineEnds(d Files, name string, size int64) (bool, error) {
	if size == 0 {
		return true, nil
	}
	f, err := d.OpenFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer disk.Close(f)
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, size-1); errors.Is(err, io.EOF) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return last[0] == '\n', nil
}

// Split splits at line feeds only, because strings can contain other line separators.
func Split(raw []byte, from int64) stream {
	s, err := split(run.NewReader(bytes.NewReader(raw), from), from)
	if err != nil {
		panic(fmt.Sprintf("read bytes in memory: %v", err)) // a reader of bytes returns no error
	}
	return s
}

// ParseAny parses a line as an event. Other lines become an event that changes nothing.
func ParseAny(line string) run.Event {
	e, err := run.ParseLine(line)
	if err != nil {
		return run.Event{}
	}
	return e
}

// HasEnded reports whether the last start of a run has ended.
func HasEnded(lines []string) bool {
	for _, line := range slices.Backward(lines) {
		switch ParseAny(line).Kind {
		case run.KindRunEnd:
			return true
		case run.KindRunStart, run.KindRunResumed, run.KindRunReverted:
			return false
		}
	}
	return false
}

// Seqs returns the numbers of events.
func Seqs(events []run.Event) map[int64]bool {
	in := map[int64]bool{}
	for _, e := range events {
		in[e.Seq] = true
	}
	return in
}

// InForce returns those of the first events that no revert has undone.
func InForce(lines []string, last int64) []run.Event {
	n := min(last, int64(len(lines)))
	events := make([]run.Event, n)
	for i := range events {
		events[i] = ParseAny(lines[i])
		events[i].Seq = int64(i) + 1
	}
	return run.InForce(events)
}

package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/run"
)

// stream is what a part of events.jsonl holds.
type stream struct {
	lines []string // complete ones, without their line feed
	size  int64    // bytes of the file up to the last line feed
	torn  []byte   // what stands after it
}

// readStream reads events.jsonl from an offset that is the start of a line. A missing file is empty.
func (d Dir) readStream(from int64) (stream, error) {
	f, err := durable.Open(d.Path(EventsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return stream{}, nil
	}
	if err != nil {
		return stream{}, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return stream{}, err
	}
	raw, err := io.ReadAll(f)
	if err != nil {
		return stream{}, fmt.Errorf("read %s: %w", d.Path(EventsFile), err)
	}
	return split(raw, from), nil
}

// lineEnds says whether the stream has that many bytes and a line ends with them.
func (d Dir) lineEnds(size int64) (bool, error) {
	if size == 0 {
		return true, nil
	}
	f, err := durable.Open(d.Path(EventsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, size-1); errors.Is(err, io.EOF) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return last[0] == '\n', nil
}

// split cuts at line feeds only: other line separators may stand inside strings.
func split(raw []byte, from int64) stream {
	s := stream{size: from}
	for {
		i := bytes.IndexByte(raw, '\n')
		if i < 0 {
			s.torn = raw
			return s
		}
		s.lines = append(s.lines, string(raw[:i]))
		s.size += int64(i) + 1
		raw = raw[i+1:]
	}
}

// Events reads every complete line of the stream. Lines that are not JSON objects are skipped and counted.
func (d Dir) Events() (events []run.Event, damaged int, err error) {
	s, err := d.readStream(0)
	if err != nil {
		return nil, 0, err
	}
	for _, l := range s.lines {
		e, err := run.ParseEvent([]byte(l))
		if err != nil {
			damaged++
			continue
		}
		events = append(events, e)
	}
	return events, damaged, nil
}

// Follow reads the complete lines behind an offset, and the offset to go on from: for tools that watch a run.
func (d Dir) Follow(from int64) (lines []string, next int64, err error) {
	s, err := d.readStream(from)
	return s.lines, max(s.size, from), err // a directory that is away for a moment is not followed from its beginning again
}

// Recent reads the last events: the complete lines within the last so many bytes of the stream. Lines that are not JSON objects are skipped.
func (d Dir) Recent(bytes int64) ([]run.Event, error) {
	fi, err := os.Stat(d.Path(EventsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	from := max(0, fi.Size()-bytes)
	s, err := d.readStream(from)
	if from > 0 && len(s.lines) > 0 {
		s.lines = s.lines[1:] // it began before from
	}
	var events []run.Event
	for _, l := range s.lines {
		if e, err := run.ParseEvent([]byte(l)); err == nil {
			events = append(events, e)
		}
	}
	return events, err
}

// Tail says where the stream on disk ends.
func (d Dir) Tail() (run.Tail, error) {
	s, err := d.readStream(0)
	return run.Tail{Seq: int64(len(s.lines)), Chain: run.Chain("").Over(s.lines)}, err
}

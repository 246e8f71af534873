package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/passbook-run/passbook/run"
)

// Lines iterates over the complete lines of events.jsonl from an offset, which is the start of a line. A line is valid
// until the next one. An error ends the iteration; a missing file has no lines.
func (d Dir) Lines(from int64) iter.Seq2[*run.Line, error] {
	return func(yield func(*run.Line, error) bool) {
		f, err := OpenLines(d, EventsFile, from)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		for line, err := range f.Lines() {
			if err != nil {
				err = fmt.Errorf("read %s: %w", d.Path(EventsFile), err)
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

// Events reads every complete line of the stream. It skips and counts lines that are not JSON objects.
func (d Dir) Events() (events []run.Event, damaged int, err error) {
	for line, err := range d.Lines(0) {
		switch {
		case err != nil:
			return nil, 0, err
		case line.Err != nil:
			damaged++
		default:
			events = append(events, line.Event)
		}
	}
	return events, damaged, nil
}

// Recent reads the complete lines within the last bytes of the stream. It skips lines that are not JSON objects.
func (d Dir) Recent(bytes int64) ([]run.Event, error) {
	fi, err := d.Stat(EventsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	from := max(0, fi.Size()-bytes)
	var events []run.Event
	for line, err := range d.Lines(from) {
		switch {
		case err != nil:
			return nil, err
		case line.Err == nil && (from == 0 || line.Number > 1): // the first one began before from
			events = append(events, line.Event)
		}
	}
	return events, nil
}

// Tail returns the end of the stream on disk.
func (d Dir) Tail() (run.Tail, error) {
	var t run.Tail
	for line, err := range d.Lines(0) {
		if err != nil {
			return run.Tail{}, err
		}
		t = run.Tail{Seq: line.Number, Chain: line.Chain(t.Chain)}
	}
	return t, nil
}

package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
)

// MaxLine is how long a line may be, in bytes. A longer one counts as damaged.
const MaxLine = 64 << 20

// Line is one complete line of events.jsonl.
type Line struct {
	Number int64  // of the lines that were read, from 1
	End    int64  // offset after its line feed
	Bytes  []byte // without the line feed, valid until the next line is read; nil: too long
	Event  Event  // zero where Err is set; its payload is a piece of Bytes: who keeps the event clones it
	Err    error  // why the line is not an event; nil: it is one

	scratch []byte
}

// Reader reads a stream of events line by line. It splits at line feeds only, and holds no more than a line and a piece
// of the next.
type Reader struct {
	source io.Reader
	buf    []byte
	at     int   // where in buf the next line begins
	end    int   // where buf is filled to
	err    error // of the source
	over   int64 // bytes of a line that is too long to hold, so far
	more   bool  // the source has filled buf
	line   Line

	words    words
	phases   map[string]*string
	payloads map[string]reflect.Value // by kind: what its newest payload was decoded into; nil: no line was parsed
}

// chunk is how much a reader holds of a long stream; of a short one it holds the first size that suffices.
const (
	firstChunk = 4 << 10
	chunk      = 256 << 10
)

// NewReader reads a stream. from is the offset of its first byte in events.jsonl.
func NewReader(source io.Reader, from int64) *Reader {
	return &Reader{source: source, buf: make([]byte, firstChunk), line: Line{End: from}}
}

// Lines iterates over the complete lines that are left. An error of the source ends it.
func (r *Reader) Lines() iter.Seq2[*Line, error] {
	return func(yield func(*Line, error) bool) {
		for {
			line, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// RawLines is Lines without parsing: Event is zero, and Err is set only for a line that is too long.
func (r *Reader) RawLines() iter.Seq2[*Line, error] {
	return func(yield func(*Line, error) bool) {
		for {
			err := r.read()
			if errors.Is(err, io.EOF) || !yield(&r.line, err) || err != nil {
				return
			}
		}
	}
}

// Torn returns the bytes after the last line feed, once Next has returned io.EOF. They were never acknowledged.
func (r *Reader) Torn() []byte { return r.buf[r.at:r.end] }

// Next returns the next line, which is valid until the next call; io.EOF after the last complete one.
func (r *Reader) Next() (*Line, error) {
	if err := r.read(); err != nil {
		return nil, err
	}
	if r.payloads == nil {
		r.phases, r.payloads = map[string]*string{}, payloads()
	}
	l := &r.line
	if l.Err == nil {
		l.Err = l.Event.parse(l.Bytes, r)
	}
	if l.Err != nil {
		l.Event = Event{}
	}
	return l, nil
}

// read reads the next line.
func (r *Reader) read() error {
	raw, err := r.next()
	if err != nil {
		return err
	}
	l := &r.line
	l.Number, l.Bytes, l.Err = l.Number+1, raw, nil
	l.End += r.over + int64(len(raw)) + 1
	if r.over > 0 {
		l.Bytes, l.Err, r.over = nil, fmt.Errorf("longer than %d bytes", MaxLine), 0
	}
	return nil
}

// phase returns a phase's name. A reader keeps the first ones: the events of a run repeat them.
func (r *Reader) phase(name []byte) *string {
	const most = 1000
	if r != nil {
		if known := r.phases[string(name)]; known != nil {
			return known
		}
	}
	phase := string(name)
	if r != nil && len(r.phases) < most {
		r.phases[phase] = &phase
	}
	return &phase
}

// decode checks the value at i, as scanValue does, and decodes it as the payload of a kind, once for all who will ask
// for it. kind is empty where it comes later in the line.
func (r *Reader) decode(kind, line []byte, i int) (end int, decoded any) {
	into, known := r.payloads[string(bytes.Trim(kind, `"`))]
	if !known {
		return scanValue(line, i, 1), nil
	}
	into.SetZero()
	if end = decoderOf(into.Type()).value(&r.words, line, i, 1, into); end < 0 {
		return scanValue(line, i, 1), nil
	}
	return end, into.Addr().Interface()
}

// payloads are where a reader decodes payloads into, by kind.
func payloads() map[string]reflect.Value {
	into := map[string]reflect.Value{}
	for kind, row := range kinds {
		if v := reflect.ValueOf(row.decodes()).Elem(); decoderOf(v.Type()).usual {
			into[string(kind)] = v
		}
	}
	return into
}

// next returns the next complete line without its line feed. The piece of one that is too long is dropped, and over
// counts it.
func (r *Reader) next() ([]byte, error) {
	for from := r.at; ; {
		if n := bytes.IndexByte(r.buf[from:r.end], '\n'); n >= 0 {
			line := r.buf[r.at : from+n]
			r.at = from + n + 1
			return line, nil
		}
		if r.err != nil {
			return nil, r.err
		}
		from = r.fill()
	}
}

// fill reads more after the incomplete line in the buffer, and returns where the new bytes begin.
func (r *Reader) fill() int {
	if r.at > 0 {
		r.end, r.at = copy(r.buf, r.buf[r.at:r.end]), 0
	}
	if r.end > MaxLine {
		r.over, r.end = r.over+int64(r.end), 0
	}
	if r.end == len(r.buf) || r.more && len(r.buf) < chunk {
		r.buf = append(r.buf, make([]byte, min(len(r.buf), MaxLine+1-len(r.buf)))...)
	}
	from := r.end
	n, err := r.source.Read(r.buf[r.end:])
	r.end, r.err = r.end+n, err
	r.more = r.end == len(r.buf)
	return from
}

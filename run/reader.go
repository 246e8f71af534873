package run

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxLine is how long a line may be, in bytes. A longer one counts as damaged.
const MaxLine = 64 << 20

// Line is one complete line of events.jsonl.
type Line struct {
	Number int64  // of the lines that were read, from 1
	End    int64  // offset after its line feed
	Bytes  []byte // without the line feed, valid until the next line is read; nil: too long
	Event  Event  // zero where Err is set
	Err    error  // why the line is not an event; nil: it is one
}

// Reader reads a stream of events line by line. It splits at line feeds only, and holds one line.
type Reader struct {
	source *bufio.Reader
	line   Line
	buf    []byte
}

// NewReader reads a stream. from is the offset of its first byte in events.jsonl.
func NewReader(source io.Reader, from int64) *Reader {
	return &Reader{source: bufio.NewReaderSize(source, 64<<10), line: Line{End: from}}
}

// Lines iterates over the complete lines that are left. An error of the source ends it.
func (r *Reader) Lines() iter.Seq2[*Line, error] { return r.each(r.Next) }

// RawLines is Lines without parsing: Event is zero, and Err is set only for a line that is too long.
func (r *Reader) RawLines() iter.Seq2[*Line, error] {
	return r.each(func() (*Line, error) { return &r.line, r.read() })
}

func (r *Reader) each(next func() (*Line, error)) iter.Seq2[*Line, error] {
	return func(yield func(*Line, error) bool) {
		for {
			line, err := next()
			if errors.Is(err, io.EOF) || !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// Torn returns the bytes after the last line feed, once Next has returned io.EOF. They were never acknowledged.
func (r *Reader) Torn() []byte { return r.buf }

// Next returns the next line, which is valid until the next call; io.EOF after the last complete one.
func (r *Reader) Next() (*Line, error) {
	if err := r.read(); err != nil {
		return nil, err
	}
	l := &r.line
	if l.Err == nil {
		l.Event, l.Err = parse(l.Bytes)
	}
	if l.Err == nil {
		l.Event = l.Event.Decoded()
		l.Err = l.Event.checkNames()
	}
	if l.Err != nil {
		l.Event = Event{}
	}
	return l, nil
}

// read reads the next line. The bytes of one that is too long are dropped.
func (r *Reader) read() error {
	size := int64(0)
	r.buf = r.buf[:0]
	for {
		piece, err := r.source.ReadSlice('\n')
		if size += int64(len(piece)); size <= MaxLine+1 {
			r.buf = append(r.buf, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	l := &r.line
	l.Number, l.End, l.Bytes, l.Event, l.Err = l.Number+1, l.End+size, r.buf[:len(r.buf)-1], Event{}, nil
	if size > MaxLine+1 {
		l.Bytes, l.Err = nil, fmt.Errorf("longer than %d bytes", MaxLine)
	}
	r.buf = r.buf[:0:cap(r.buf)]
	return nil
}

package adapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// MaxValue is the maximum size of one JSON value of an output, in bytes. A larger one is not read.
const MaxValue = 32 << 20

// maxLine is the number of bytes kept of a line that is not JSON.
const maxLine = 4 << 10

// piece is one part of an output.
type piece struct {
	kind pieceKind
	raw  []byte // of an object: the whole of it; of a line: its beginning. It is valid until the next piece.
	size int
}

type pieceKind int

const (
	pieceLine       pieceKind = iota // a line that is not JSON
	pieceObject                      // a JSON object, or something with as many closing as opening brackets
	pieceOpen                        // an array begins; the following objects are its elements
	pieceClose                       // the array ends
	pieceLarge                       // an object of more than MaxValue bytes
	pieceUnfinished                  // an object or array without end
)

// splitter cuts an output into JSON objects and lines of text. It holds one object at most.
type splitter struct {
	lines bool // each object is on one line, and there are no arrays

	state    splitState
	array    bool // an array is open
	depth    int
	quoted   bool
	escaped  bool
	buf      []byte
	size     int
	consumer func(piece)
}

type splitState int

const (
	between splitState = iota // values or lines
	inLine                    // a line that is not JSON
	opening                   // after the first bracket of a value
	inObject
)

func (s *splitter) write(chunk []byte) {
	for len(chunk) > 0 {
		var n int
		switch s.state {
		case between:
			n = s.begin(chunk)
		case inLine:
			n = s.line(chunk)
		case opening:
			n = s.open(chunk[0])
		case inObject:
			n = s.object(chunk)
		}
		chunk = chunk[n:]
	}
}

// end reports what has no end.
func (s *splitter) end() {
	switch {
	case s.state == inLine:
		s.yield(pieceLine)
	case s.state != between:
		s.yield(pieceUnfinished)
	}
	if s.array {
		s.yield(pieceUnfinished)
	}
}

func (s *splitter) yield(kind pieceKind) {
	s.consumer(piece{kind: kind, raw: s.buf, size: s.size})
	if cap(s.buf) > 1<<20 {
		s.buf = nil
	}
	s.state, s.depth, s.quoted, s.escaped, s.buf, s.size = between, 0, false, false, s.buf[:0], 0
}

// keep appends bytes to the piece as far as they fit.
func (s *splitter) keep(b []byte, limit int) {
	s.size += len(b)
	s.buf = append(s.buf, b[:max(0, min(len(b), limit-len(s.buf)))]...)
}

// begin reads the start of a value or line.
func (s *splitter) begin(chunk []byte) int {
	switch c := chunk[0]; {
	case space(c):
		return 1
	case s.array && c == ',':
		return 1
	case s.array && c == ']':
		s.array = false
		s.yield(pieceClose)
		return 1
	case c == '{', c == '[' && !s.array && !s.lines:
		s.keep(chunk[:1], maxLine)
		s.state = opening
		return 1
	}
	s.state = inLine
	return 0
}

func (s *splitter) line(chunk []byte) int {
	at := bytes.IndexByte(chunk, '\n')
	if at < 0 {
		s.keep(chunk, maxLine)
		return len(chunk)
	}
	s.keep(chunk[:at], maxLine)
	s.yield(pieceLine)
	return at + 1
}

// open decides whether a bracket begins a value: an object has a key or nothing, an array has objects or nothing.
func (s *splitter) open(c byte) int {
	isArray := s.buf[0] == '['
	switch {
	case c == '\n' && s.lines:
		s.yield(pieceLine)
		return 1
	case space(c):
		s.keep([]byte{c}, maxLine)
		return 1
	case isArray && (c == '{' || c == ']'):
		s.array = true
		s.yield(pieceOpen)
	case !isArray && (c == '"' || c == '}'):
		s.state, s.depth = inObject, 1
	case bytes.IndexByte(s.buf, '\n') >= 0: // the bracket is alone on its line
		s.yield(pieceLine)
	default:
		s.state = inLine
	}
	return 0
}

// object reads an object until its end.
func (s *splitter) object(chunk []byte) int {
	for i, c := range chunk {
		switch {
		case s.escaped:
			s.escaped = false
		case c == '\n' && (s.lines || s.quoted):
			s.keep(chunk[:i], MaxValue)
			s.yield(pieceLine)
			return i + 1
		case s.quoted:
			s.escaped, s.quoted = c == '\\', c != '"'
		case c == '"':
			s.quoted = true
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			if s.depth--; s.depth == 0 {
				s.keep(chunk[:i+1], MaxValue)
				s.finish()
				return i + 1
			}
		}
	}
	s.keep(chunk, MaxValue)
	return len(chunk)
}

func (s *splitter) finish() {
	if s.size > MaxValue {
		s.yield(pieceLarge)
		return
	}
	s.yield(pieceObject)
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// clip returns the beginning of a text as valid UTF-8 in one line.
func clip(text []byte, limit int) string {
	head := text[:min(len(text), limit)]
	short := strings.Join(strings.Fields(strings.ToValidUTF8(string(head), "\uFFFD")), " ")
	if len(text) > limit {
		short += "…"
	}
	return short
}

func tooLarge(part piece) string {
	return fmt.Sprintf("a JSON object of %d bytes was not read; the maximum is %d", part.size, MaxValue)
}

// decode reads JSON. exact is false if a field has another type than expected; it may be empty then.
func decode(raw []byte, into any) (ok, exact bool) {
	var wrong *json.UnmarshalTypeError
	err := json.Unmarshal(raw, into)
	return err == nil || errors.As(err, &wrong), err == nil
}

// compact returns JSON without white space. A large value is left out.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(raw) > maxLine || json.Compact(&b, bytes.ToValidUTF8(raw, []byte("\uFFFD"))) != nil {
		return nil
	}
	return b.Bytes()
}

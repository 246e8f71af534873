package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxLine is how long a line may be, in bytes. A longer one counts as damaged.
const MaxLine = 64 << 20

// Finding is something in a stream that is not as it should be.
type Finding struct {
	Line    int64       `json:"line"` // 1-based
	Kind    FindingKind `json:"kind"`
	Seq     int64       `json:"seq"` // as the line says; 0 if it does not
	Message string      `json:"message"`
}

// FindingKind says what is wrong with a line.
type FindingKind string

// Kinds of findings.
const (
	Damaged     FindingKind = "damaged"      // a complete line that is no JSON
	NotObject   FindingKind = "not_object"   // JSON, but no object
	BadSeq      FindingKind = "bad_seq"      // no seq, or none from 1 on
	RepeatedSeq FindingKind = "repeated_seq" // a seq that was there before, or a smaller one
	SeqGap      FindingKind = "seq_gap"      // seqs are missing before this line
)

const keptFindings = 100

// Tally is what a stream holds.
type Tally struct {
	Lines     int64     `json:"lines"`  // complete ones
	Events    int64     `json:"events"` // those that are objects
	Size      int64     `json:"size"`   // bytes up to the last line feed
	Torn      int64     `json:"torn"`   // bytes behind it
	LastSeq   int64     `json:"last_seq"`
	Damaged   int64     `json:"damaged"`
	NotObject int64     `json:"not_object"`
	BadSeq    int64     `json:"bad_seq"`
	Repeated  int64     `json:"repeated_seq"`
	Gaps      int64     `json:"seq_gaps"`
	Findings  []Finding `json:"findings"` // the first hundred; never nil
}

// Sound says that nothing was found. An unterminated last line is nothing: it was never acknowledged.
func (t Tally) Sound() bool { return len(t.Findings) == 0 }

// Reader reads a stream of events, line by line. It splits at line feeds only, and holds no more than a line and a piece of the next.
type Reader struct {
	source io.Reader
	buf    []byte
	at     int   // where in buf the next line begins
	end    int   // where buf is filled to
	err    error // of the source
	over   int64 // bytes of a line that is too long to hold, so far
	event  Event
	tally  Tally
}

// NewReader reads from the beginning of a stream.
func NewReader(source io.Reader) *Reader {
	const chunk = 64 << 10
	return &Reader{source: source, buf: make([]byte, chunk), tally: Tally{Findings: []Finding{}}, event: Event{spans: make([]span, 0, 32)}}
}

// Tally is what was read so far; all of it once Next has returned io.EOF.
func (r *Reader) Tally() Tally { return r.tally }

// Next gives the next event; io.EOF behind the last complete line. Lines that are no events are left out and named in the tally. The event's
// payload is good until the next call.
func (r *Reader) Next() (Event, error) {
	e, err := r.next()
	if err != nil {
		return Event{}, err
	}
	return Event{Seq: e.Seq, TS: e.TS, Kind: e.Kind, Phase: e.Phase, Payload: e.Payload}, nil
}

// FoldAll folds all events into f.
func (r *Reader) FoldAll(f *Fold) error {
	for {
		e, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f.add(e)
	}
}

func (r *Reader) next() (*Event, error) {
	for {
		line, err := r.line()
		if err != nil {
			return nil, err
		}
		r.tally.Lines++
		if r.over > 0 {
			r.over = 0
			r.find(Damaged, 0, fmt.Sprintf("longer than %d bytes", MaxLine))
			continue
		}
		if err := r.event.parse(line); err != nil {
			r.find(kindOfFault(line), 0, err.Error())
			continue
		}
		r.tally.Events++
		r.checkSeq(r.event.Seq)
		return &r.event, nil
	}
}

// line gives the next complete line without its line feed. The piece of one that is too long is dropped, and over counts it.
func (r *Reader) line() ([]byte, error) {
	for from := r.at; ; {
		if n := bytes.IndexByte(r.buf[from:r.end], '\n'); n >= 0 {
			line := r.buf[r.at : from+n]
			r.at = from + n + 1
			r.tally.Size += r.over + int64(len(line)) + 1
			return line, nil
		}
		if r.err != nil {
			r.tally.Torn = r.over + int64(r.end-r.at)
			return nil, r.err
		}
		from = r.fill()
	}
}

// fill reads more behind the piece of a line at hand, and gives where the new bytes begin.
func (r *Reader) fill() int {
	if r.at > 0 {
		r.end, r.at = copy(r.buf, r.buf[r.at:r.end]), 0
	}
	if r.end > MaxLine {
		r.over, r.end = r.over+int64(r.end), 0
	}
	if r.end == len(r.buf) {
		r.buf = append(r.buf, make([]byte, min(len(r.buf), MaxLine+1-len(r.buf)))...)
	}
	from := r.end
	n, err := r.source.Read(r.buf[r.end:])
	r.end, r.err = r.end+n, err
	return from
}

// kindOfFault tells JSON that is no object from what is no JSON.
func kindOfFault(line []byte) FindingKind {
	i := skipSpace(line, 0)
	if end := scanValue(line, i, 0); end >= 0 && skipSpace(line, end) == len(line) {
		return NotObject
	}
	return Damaged
}

func (r *Reader) checkSeq(seq int64) {
	last := r.tally.LastSeq
	switch {
	case seq < 1:
		r.find(BadSeq, seq, "the seq is missing, or not a whole number from 1 on")
	case seq <= last:
		r.find(RepeatedSeq, seq, fmt.Sprintf("seq %d comes again after %d", seq, last))
	case seq > last+1:
		r.find(SeqGap, seq, fmt.Sprintf("seq %d follows %d", seq, last))
	}
	r.tally.LastSeq = max(last, seq)
}

func (r *Reader) find(kind FindingKind, seq int64, message string) {
	t := &r.tally
	switch kind {
	case Damaged:
		t.Damaged++
	case NotObject:
		t.NotObject++
	case BadSeq:
		t.BadSeq++
	case RepeatedSeq:
		t.Repeated++
	case SeqGap:
		t.Gaps++
	}
	if len(t.Findings) < keptFindings {
		t.Findings = append(t.Findings, Finding{Line: t.Lines, Kind: kind, Seq: seq, Message: message})
	}
}

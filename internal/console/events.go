package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/rundir"
)

const (
	maxStreams  = 200              // open at once
	maxEvents   = 1000             // of one answer in JSON
	maxAnswer   = 4 << 20          // bytes of events of one answer in JSON
	beatEvery   = 15 * time.Second // a comment, so that both ends find out that the other has gone
	followEvery = 250 * time.Millisecond
)

// eventList is a part of the journal.
type eventList struct {
	Events []json.RawMessage `json:"events" jsonschema:"lines of events.jsonl: seq, ts, kind, phase, payload"`
	Last   int64             `json:"last" jsonschema:"seq of the last one; ask for those after it"`
	More   bool              `json:"more" jsonschema:"there are more already"`
	// lines after the event that the client has
	Damaged []damagedLine `json:"damaged,omitempty" jsonschema:"lines that are no events; starter check explains them"`
	Closed  bool          `json:"closed" jsonschema:"the run has ended; a later start may continue it"`
}

// damagedLine is a line of the journal that is not an event.
type damagedLine struct {
	Line   int64  `json:"line" jsonschema:"number of the line in events.jsonl"`
	Detail string `json:"detail" jsonschema:"why it is not an event"`
}

// events sends the journal of a run, from its directory alone: as JSON, or as a stream that follows it.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	after, err := afterOf(r)
	if err != nil {
		refuse(w, newProblem(api.CodeInvalid, "read the events of a run: "+err.Error()))
		return
	}
	d, err := s.host.Find(r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	j := journal{dir: d, last: after}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		s.stream(w, r, &j)
		return
	}
	list := eventList{Events: []json.RawMessage{}}
	size := 0
	list.More, err = j.read(func(line *line) bool {
		if line.damaged != nil {
			if len(list.Damaged) < maxEvents { // and read on: the client asks for what follows an event
				list.Damaged = append(list.Damaged, *line.damaged)
			}
			return true
		}
		if len(list.Events) >= maxEvents || size > 0 && size+len(line.text) > maxAnswer {
			return false
		}
		size += len(line.text)
		list.Events = append(list.Events, json.RawMessage(string(line.text)))
		return true
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list.Last, list.Closed = j.last, closed(d)
	answer(w, r, list)
}

// afterOf is the number of the event that the client has: that of the address, or of a stream that broke off.
func afterOf(r *http.Request) (int64, error) {
	for key := range r.URL.Query() {
		if key != "after" {
			return 0, fmt.Errorf("the parameter %q is unknown", key)
		}
	}
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("after is %q; use the seq of an event, or 0", text)
	}
	return n, nil
}

// stream sends events as they are written, until the run has ended or the client goes. A client that reads too slowly
// is dropped: it continues with Last-Event-ID.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, j *journal) {
	if s.streams.Add(1) > maxStreams {
		s.streams.Add(-1)
		w.Header().Set("Retry-After", "10")
		refuse(w, newProblem(codeTooMany, fmt.Sprintf("%d streams are open, which is the maximum; read the events as JSON",
			maxStreams)))
		return
	}
	defer s.streams.Add(-1)
	if closed(j.dir) && !j.behind() {
		w.WriteHeader(http.StatusNoContent) // a browser does not ask again
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	control, beat := http.NewResponseController(w), time.Now()
	flush := func(text string) bool {
		if _, err := w.Write([]byte(text)); err != nil {
			return false
		}
		beat = time.Now()
		return control.Flush() == nil
	}
	if !flush("retry: 2000\n\n") {
		return
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		ends := closed(j.dir) // before the read: what was written meanwhile belongs to it
		more, err := j.read(func(line *line) bool {
			if line.damaged != nil {
				return flush("event: damaged\ndata: " + oneLine(line.damaged) + "\n\n")
			}
			return flush(fmt.Sprintf("id: %d\nevent: journal\ndata: %s\n\n", line.seq, line.text))
		})
		switch {
		case err != nil:
			flush("event: problem\ndata: " + oneLine(s.problemOf(err)) + "\n\n")
			return
		case more: // the client has gone, or was dropped
			return
		case ends:
			flush("event: end\ndata: {}\n\n")
			return
		case time.Since(beat) >= beatEvery && !flush(": alive\n\n"):
			return
		}
		select {
		case <-r.Context().Done():
			if access.Revoked(r.Context()) {
				flush("event: problem\ndata: " + oneLine(unauthenticated()) + "\n\n")
			}
			return
		case <-s.ending:
			return
		case <-tick.C:
		}
	}
}

func oneLine(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(raw)
}

// closed reports whether a run has ended, according to its directory.
func closed(d rundir.Dir) bool {
	m, err := d.Meta()
	return err == nil && m.State.Status.Closed()
}

// journal reads the lines of a run's journal that follow an event.
type journal struct {
	dir    rundir.Dir
	last   int64 // seq of the last event that was read
	offset int64 // after it, in the file; 0: the file was not read yet
	number int64 // of the line that ends there
	passed bool  // the event that was the last one at first
}

// line is an event with its number, or a damaged line.
type line struct {
	seq     int64
	text    []byte
	damaged *damagedLine
}

// behind reports whether the journal has events after the last one.
func (j *journal) behind() bool {
	at := *j
	more, err := at.read(func(l *line) bool { return l.damaged != nil })
	return more || err != nil
}

// read visits the complete lines after the last one, until visit refuses one; more: it did. Only one line is in memory.
// A file that was replaced by a shorter one is read from its start.
func (j *journal) read(visit func(*line) bool) (more bool, err error) {
	fi, err := j.dir.Stat("events.jsonl")
	if err == nil && fi.Size() < j.offset {
		j.offset, j.number = 0, 0
	}
	first := j.number
	for l, err := range j.dir.Lines(j.offset) {
		if err != nil {
			return false, err
		}
		next := &line{seq: l.Event.Seq, text: l.Bytes}
		if l.Err != nil {
			next.damaged = &damagedLine{Line: first + l.Number, Detail: l.Err.Error()}
		}
		fresh := l.Err == nil && l.Event.Seq > j.last || l.Err != nil && (j.passed || j.last == 0)
		if fresh && !visit(next) {
			return true, nil
		}
		if l.Err == nil {
			j.passed = j.passed || l.Event.Seq >= j.last
			j.last = max(j.last, l.Event.Seq)
		}
		j.offset, j.number = l.End, first+l.Number
	}
	return false, nil
}

package run

import (
	"encoding/json"
	"fmt"
	"slices"
)

// ParseEvent reads one line. Only something that is not a JSON object is an error; fields of a wrong type stay empty.
func ParseEvent(line []byte) (Event, error) {
	var e Event
	err := e.parse(line)
	e.Payload = slices.Clone(e.Payload)
	return e, err
}

// parse reads a line. The payload is a piece of the line, not a copy.
func (e *Event) parse(line []byte) error {
	e.spans = e.spans[:0]
	if e.parsePlain(line) {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil {
		return fmt.Errorf("not a JSON object: %w", err)
	}
	if object == nil {
		return errNull
	}
	*e = Event{Payload: object["payload"], spans: e.spans[:0]}
	loose(object["seq"], &e.Seq)
	loose(object["ts"], &e.TS)
	loose(object["kind"], &e.Kind)
	loose(object["phase"], &e.Phase)
	return nil
}

var errNull = fmt.Errorf("not a JSON object: null")

// parsePlain reads a line in which nothing is out of the ordinary; false for any other.
func (e *Event) parsePlain(line []byte) bool {
	i := skipSpace(line, 0)
	if i >= len(line) || line[i] != '{' {
		return false
	}
	var f fields
	if i = skipSpace(line, i+1); i < len(line) && line[i] == '}' {
		return false
	}
	for more := true; more; i++ {
		s := scanKey(line, i)
		if s.end < 0 {
			return false
		}
		key := line[s.key:s.keyEnd]
		if i = e.scanField(line, s.value, string(key) == "payload"); i < 0 || !f.set(key, line[s.value:i]) {
			return false
		}
		if i = skipSpace(line, i); i >= len(line) || line[i] != ',' && line[i] != '}' {
			return false
		}
		more = line[i] == ','
	}
	return skipSpace(line, i) == len(line) && e.fill(&f)
}

// fields are the values of an event's members, as they stand in the line.
type fields struct{ seq, ts, kind, phase, payload []byte }

// set takes a member; false for a key that may be another spelling of one of them.
func (f *fields) set(key, value []byte) bool {
	switch string(key) {
	case "seq":
		f.seq = value
	case "ts":
		f.ts = value
	case "kind":
		f.kind = value
	case "phase":
		f.phase = value
	case "payload":
		f.payload = value
	default:
		return !slices.Contains(key, '\\')
	}
	return true
}

// scanField checks the value of a member. Where the members of a payload are is noted, if there is room for it.
func (e *Event) scanField(line []byte, i int, payload bool) int {
	if payload {
		e.spans = e.spans[:0] // of a payload that came before on the same line
	}
	if !payload || e.spans == nil || i >= len(line) || line[i] != '{' {
		return scanValue(line, i, 1)
	}
	end := scanObject(line, i+1, 2, &e.spans)
	if len(e.spans) == maxSpans {
		e.spans = e.spans[:0] // there may be more
	}
	for n := range e.spans {
		s := &e.spans[n]
		*s = span{s.key - i, s.keyEnd - i, s.value - i, s.end - i}
	}
	return end
}

// fill sets the fields; false if one is not as it always is.
func (e *Event) fill(f *fields) bool {
	n, ok := integer(f.seq)
	at, isText := plain(f.ts)
	what, isKind := plain(f.kind)
	if !ok || !isText || !isKind || !e.fillPhase(f.phase) {
		return false
	}
	e.Seq, e.TS, e.Kind, e.Payload = n, string(at), kindOf(what), f.payload
	return true
}

// fillPhase keeps the phase of the event before, if it is the same one.
func (e *Event) fillPhase(value []byte) bool {
	name, ok := plain(value)
	switch {
	case !ok:
		e.Phase = nil
		return value == nil || string(value) == "null"
	case e.Phase == nil || *e.Phase != string(name):
		phase := string(name)
		e.Phase = &phase
	}
	return true
}

// kindOf gives the kind that a name stands for, without a copy of those that a stream is full of.
func kindOf(name []byte) Kind {
	switch string(name) {
	case string(KindPassStart):
		return KindPassStart
	case string(KindPassAttempt):
		return KindPassAttempt
	case string(KindPassEnd):
		return KindPassEnd
	case string(KindArtifactUpdated):
		return KindArtifactUpdated
	case string(KindNoteAppended):
		return KindNoteAppended
	case string(KindPhaseStart):
		return KindPhaseStart
	case string(KindPhaseEnd):
		return KindPhaseEnd
	case string(KindHandoffRequested):
		return KindHandoffRequested
	case string(KindHandoffDecided):
		return KindHandoffDecided
	}
	return Kind(name)
}

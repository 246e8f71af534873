package run

import (
	"encoding/json"
	"fmt"
	"slices"
)

// ParseEvent reads one line. Only something that is not a JSON object is an error, and a name that leads out of a run
// directory ([NameError]); fields of a wrong type stay empty.
func ParseEvent(line []byte) (Event, error) {
	var e Event
	err := e.parse(line, nil)
	e.Payload = slices.Clone(e.Payload)
	return e, err
}

// ParseLine is ParseEvent for a line that is a string. The payload is a piece of one copy of it.
func ParseLine(line string) (Event, error) {
	var e Event
	err := e.parse([]byte(line), nil)
	return e, err
}

// parse reads a line. The payload is a piece of the line, not a copy. r, unless nil, decodes it on the way.
func (e *Event) parse(line []byte, r *Reader) error {
	if e.parsePlain(line, r) {
		return e.checkNames()
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil {
		return fmt.Errorf("not a JSON object: %w", err)
	}
	if object == nil {
		return errNull
	}
	*e = Event{Payload: object["payload"]}
	loose(object["seq"], &e.Seq)
	loose(object["ts"], &e.TS)
	loose(object["kind"], &e.Kind)
	loose(object["phase"], &e.Phase)
	loose(object["lane"], &e.Lane)
	return e.checkNames()
}

var errNull = fmt.Errorf("not a JSON object: null")

// parsePlain reads a line in the usual form; false for any other.
func (e *Event) parsePlain(line []byte, r *Reader) bool {
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
		if r != nil && string(key) == "payload" {
			i, f.decoded = r.decode(f.kind, line, s.value)
		} else {
			i = scanValue(line, s.value, 1)
		}
		if i < 0 || !f.set(key, line[s.value:i]) {
			return false
		}
		if i = skipSpace(line, i); i >= len(line) || line[i] != ',' && line[i] != '}' {
			return false
		}
		more = line[i] == ','
	}
	return skipSpace(line, i) == len(line) && e.fill(&f, r)
}

// fields are the values of an event's members, as they are in the line.
type fields struct {
	seq, ts, kind, phase, lane, payload []byte
	decoded                             any
}

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
	case "lane":
		f.lane = value
	case "payload":
		f.payload = value
	default:
		return !slices.Contains(key, '\\')
	}
	return true
}

// fill sets the fields; false if one is not in the usual form.
func (e *Event) fill(f *fields, r *Reader) bool {
	n, ok := integer(f.seq)
	at, isText := plain(f.ts)
	what, isKind := plain(f.kind)
	if !ok || !isText || !isKind || !e.fillPhase(f.phase, r) {
		return false
	}
	lane, isText := plain(f.lane)
	if !isText && f.lane != nil {
		return false
	}
	e.Lane = string(lane) // empty: the reader uses one event for all lines
	e.Seq, e.TS, e.Kind, e.Payload, e.decoded = n, string(at), kindOf(what), f.payload, f.decoded
	return true
}

// fillPhase sets the phase, without a copy of one that the reader has seen.
func (e *Event) fillPhase(value []byte, r *Reader) bool {
	name, ok := plain(value)
	if !ok {
		e.Phase = nil
		return value == nil || string(value) == "null"
	}
	e.Phase = r.phase(name)
	return true
}

// kindOf returns the kind of a name, without a copy of those that are known.
func kindOf(name []byte) Kind {
	if r := kinds[Kind(name)]; r != nil {
		return r.kind
	}
	return Kind(name)
}

// loose decodes what fits and leaves the rest: readers must survive lines that another program wrote.
func loose(raw json.RawMessage, v any) {
	if len(raw) == 0 {
		return
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return // encoding/json has filled in what fits
	}
}

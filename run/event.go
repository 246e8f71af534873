// Package run holds what a run is: its events, the state they fold into, its statuses and costs.
//
// It is pure: no IO, no clock, no Temporal. The workflow, the projection and the offline tools fold with the same code,
// so there is no second opinion about what happened (requirements 000 and 003). The fold is total: any JSON object can
// be applied, and none stops it.
package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// TimeFormat is how every time is written: UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Time writes t in TimeFormat.
func Time(t time.Time) string { return t.UTC().Format(TimeFormat) }

// milliseconds returns a time in TimeFormat as milliseconds since 1970; false for other formats. It accepts what
// time.Parse accepts, and costs a fifth.
func milliseconds(ts string) (int64, bool) {
	if len(ts) != len(TimeFormat) {
		return 0, false
	}
	valid := ts[4] == '-' && ts[7] == '-' && ts[10] == 'T' && ts[13] == ':' && ts[16] == ':' && ts[19] == '.' &&
		ts[23] == 'Z'
	number := func(from, to int) int {
		n := 0
		for _, c := range []byte(ts[from:to]) {
			valid = valid && '0' <= c && c <= '9'
			n = 10*n + int(c-'0')
		}
		return n
	}
	month, day, hour, minute, second := number(5, 7), number(8, 10), number(11, 13), number(14, 16), number(17, 19)
	milli := number(20, 23)
	t := time.Date(number(0, 4), time.Month(month), day, hour, minute, second, milli*int(time.Millisecond), time.UTC)
	if valid && int(t.Month()) == month && t.Day() == day && hour < 24 && minute < 60 && second < 60 {
		return t.UnixMilli(), true
	}
	t, err := time.Parse(TimeFormat, ts)
	return t.UnixMilli(), err == nil
}

// Event is one line of events.jsonl.
type Event struct {
	Seq     int64           `json:"seq"`
	TS      string          `json:"ts"`
	Kind    Kind            `json:"kind"`
	Phase   *string         `json:"phase"` // the stage's name, or null
	Lane    string          `json:"lane,omitempty"`
	Payload json.RawMessage `json:"payload"`

	decoded any // a pointer to the payload's type, where a Reader has decoded it
}

// At returns the event with another number: in a run directory the place of a line counts.
func (e Event) At(seq int64) Event {
	e.Seq = seq
	return e
}

// Clone returns the event with a copy of its payload.
func (e Event) Clone() Event {
	e.Payload, e.decoded = slices.Clone(e.Payload), nil
	return e
}

// Decoded returns the event with its payload decoded, once for all who will ask for it.
func (e Event) Decoded() Event {
	row := kinds[e.Kind]
	if row == nil || e.decoded != nil || len(e.Payload) == 0 {
		return e
	}
	to := row.decodes()
	if v := reflect.ValueOf(to).Elem(); decoderOf(v.Type()).usual {
		decodeInto(e.Payload, v)
		e.decoded = to
	}
	return e
}

// Line encodes e as one line without its line feed. HTML characters are kept as they are; U+2028 and U+2029 are
// escaped, so only a line feed ends a line.
func (e Event) Line() (string, error) {
	raw, err := encode(e)
	if err != nil {
		return "", fmt.Errorf("encode event %d (%s): %w", e.Seq, e.Kind, err)
	}
	return string(raw), nil
}

// Payload encodes the payload of an event.
func Payload(v any) (json.RawMessage, error) {
	raw, err := encode(v)
	if err != nil {
		return nil, fmt.Errorf("encode payload %T: %w", v, err)
	}
	return raw, nil
}

// Decode replaces *v by the payload; v points to a payload type. It is tolerant: what does not fit stays empty.
func (e Event) Decode(v any) {
	to := reflect.ValueOf(v).Elem()
	if e.decoded != nil {
		if from := reflect.ValueOf(e.decoded).Elem(); from.Type() == to.Type() {
			to.Set(from)
			return
		}
	}
	to.SetZero()
	if len(e.Payload) > 0 {
		decodeInto(e.Payload, to)
	}
}

// PayloadOf returns the payload of an event as one of its types, as [Event.Decode] does. It allocates nothing for a
// payload that a reader has decoded.
func PayloadOf[T any](e Event) T { return decoded[T](&e) }

// decoded returns the payload as one of its types.
func decoded[T any](e *Event) T {
	if d, ok := e.decoded.(*T); ok {
		return *d
	}
	return decode[T](e.Payload) // a separate function, because its result is on the heap
}

func decode[T any](payload []byte) (p T) {
	if len(payload) > 0 {
		decodeInto(payload, reflect.ValueOf(&p).Elem())
	}
	return p
}

func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

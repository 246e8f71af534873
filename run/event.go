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
	"time"
)

// TimeFormat is how every time is written: UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Time writes t in TimeFormat.
func Time(t time.Time) string { return t.UTC().Format(TimeFormat) }

// Event is one line of events.jsonl.
type Event struct {
	Seq     int64           `json:"seq"`
	TS      string          `json:"ts"`
	Kind    Kind            `json:"kind"`
	Phase   *string         `json:"phase"` // the stage's name, or null
	Payload json.RawMessage `json:"payload"`

	decoded any // a pointer to the payload's type, where a Reader or [Event.Decoded] has decoded it
}

// At returns the event with another number: in a run directory the place of a line counts.
func (e Event) At(seq int64) Event {
	e.Seq = seq
	return e
}

// Decoded returns the event with its payload decoded, once for all who will ask for it.
func (e Event) Decoded() Event {
	if row := kinds()[e.Kind]; row != nil && e.decoded == nil && len(e.Payload) > 0 {
		e.decoded = row.decodes()
		decodeInto(e.Payload, e.decoded)
	}
	return e
}

// decodeInto decodes what fits of a payload; the rest stays zero.
func decodeInto(payload []byte, to any) {
	if err := json.Unmarshal(payload, to); err != nil {
		return // encoding/json has filled in every field that fits
	}
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
	decodeInto(e.Payload, v)
}

// PayloadOf returns the payload of an event as one of its types, as [Event.Decode] does.
func PayloadOf[T any](e Event) T { return decoded[T](&e) }

// decoded returns the payload as one of its types.
func decoded[T any](e *Event) (p T) {
	if d, ok := e.decoded.(*T); ok {
		return *d
	}
	decodeInto(e.Payload, &p)
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

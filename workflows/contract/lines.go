package contract

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Lines are lines of the journal. In JSON they are objects, byte for byte, which Temporal's Web UI shows as such. A
// line that JSON encoders would change is a string.
type Lines []string

// MarshalJSON encodes the lines.
func (l Lines) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('[')
	for i, line := range l {
		if i > 0 {
			out.WriteByte(',')
		}
		raw := []byte(line)
		if !unchanged(raw) {
			var err error
			if raw, err = json.Marshal(line); err != nil {
				return nil, err
			}
		}
		out.Write(raw)
	}
	out.WriteByte(']')
	return out.Bytes(), nil
}

// unchanged reports whether a line is an object that JSON encoders leave as it is: it is compact, and has no character
// that they escape.
func unchanged(line []byte) bool {
	var same bytes.Buffer
	return bytes.HasPrefix(line, []byte("{")) && !bytes.ContainsAny(line, "<>&\u2028\u2029") &&
		json.Compact(&same, line) == nil && bytes.Equal(same.Bytes(), line)
}

// UnmarshalJSON decodes lines in either form.
func (l *Lines) UnmarshalJSON(data []byte) error {
	var all []json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*l = nil
	for _, raw := range all {
		line := string(raw)
		if strings.HasPrefix(line, `"`) {
			if err := json.Unmarshal(raw, &line); err != nil {
				return err
			}
		}
		*l = append(*l, line)
	}
	return nil
}

package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of a stored envelope, in bytes.
const (
	maxEnvelope   = 1 << 20  // all lines
	maxParsedLine = 16 << 20 // a longer line is not parsed
	maxText       = 16 << 10 // a text in a line that is longer than maxEnvelope
)

// Envelope returns what an agent reported: each JSON object of its output, and of arrays in it, compact, one per
// line. hide redacts all text. What is too large is replaced by a line of type "passbook". nil: there is no
// object, or the kind has none.
func Envelope(kind string, stdout []byte, hide func(string) string) []byte {
	if kind != KindJSON {
		return nil
	}
	all := objects(stdout)
	if len(all) == 0 {
		return nil
	}
	last := redactedLine(all[len(all)-1], hide) // the summary of the call
	var out []byte
	var omitted omission
	for _, o := range all[:len(all)-1] {
		if omitted.Lines > 0 || len(out)+len(last)+len(o) > maxEnvelope {
			omitted.Lines, omitted.Bytes = omitted.Lines+1, omitted.Bytes+len(o)
			continue
		}
		out = append(out, redactedLine(o, hide)...)
	}
	if omitted.Lines > 0 {
		out = append(out, omitted.line()...)
	}
	return append(out, last...)
}

// omission is the line that replaces omitted ones.
type omission struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Lines   int    `json:"lines"`
	Bytes   int    `json:"bytes"`
}

func (l omission) line() []byte {
	l.Type, l.Subtype = "passbook", "left_out"
	return encodeLine(l)
}

// objects returns the JSON objects in an output. Other lines are skipped; an incomplete object ends the search.
func objects(out []byte) []json.RawMessage {
	var all []json.RawMessage
	for rest := bytes.TrimSpace(out); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		var value json.RawMessage
		decoder := json.NewDecoder(bytes.NewReader(rest))
		err := io.EOF
		if rest[0] == '{' || rest[0] == '[' {
			err = decoder.Decode(&value)
		}
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return all
		case err != nil:
			_, rest, _ = bytes.Cut(rest, []byte{'\n'})
			continue
		}
		rest = rest[decoder.InputOffset():]
		all = append(all, flatten(value)...)
	}
	return all
}

// flatten returns the objects of an array, or the object itself, compact.
func flatten(value json.RawMessage) []json.RawMessage {
	var parts, all []json.RawMessage
	if value[0] == '{' {
		parts = append(parts, value)
	} else if json.Unmarshal(value, &parts) != nil {
		return nil
	}
	for _, p := range parts {
		var b bytes.Buffer
		if len(p) > 0 && p[0] == '{' && json.Compact(&b, p) == nil {
			all = append(all, b.Bytes())
		}
	}
	return all
}

// redactedLine returns a redacted object as a line. If redaction breaks the JSON, it is stored as text.
func redactedLine(object []byte, hide func(string) string) []byte {
	if len(object) > maxParsedLine {
		return omission{Lines: 1, Bytes: len(object)}.line()
	}
	escaped := mapStrings(object, func(literal []byte) bool { return bytes.IndexByte(literal, '\\') >= 0 }, hide)
	line := []byte(hide(string(escaped)))
	if !json.Valid(line) {
		line = bytes.TrimSuffix(encodeLine(map[string]string{"type": "passbook", "subtype": "text",
			"text": string(line)}),
			[]byte{'\n'})
	}
	if len(line) > maxEnvelope {
		line = mapStrings(line, func(literal []byte) bool { return len(literal) > maxText }, truncateText)
	}
	if len(line) > maxEnvelope {
		return omission{Lines: 1, Bytes: len(object)}.line()
	}
	return append(bytes.ToValidUTF8(line, []byte("\uFFFD")), '\n')
}

func truncateText(word string) string {
	head := strings.ToValidUTF8(word[:min(len(word), maxText)], "")
	return fmt.Sprintf("%s… [passbook: %d more bytes left out]", head, len(word)-len(head))
}

// mapStrings changes the wanted strings of compact JSON. All others keep their encoding.
func mapStrings(object []byte, wanted func(literal []byte) bool, change func(string) string) []byte {
	out := make([]byte, 0, len(object))
	for i := 0; i < len(object); {
		end := i + 1
		if object[i] == '"' {
			for ; object[end] != '"'; end++ {
				if object[end] == '\\' {
					end++
				}
			}
			end++
		}
		literal := object[i:end]
		var word string
		if len(literal) > 1 && wanted(literal) && json.Unmarshal(literal, &word) == nil {
			if changed := change(word); changed != word {
				literal = bytes.TrimSuffix(encodeLine(changed), []byte{'\n'})
			}
		}
		out, i = append(out, literal...), end
	}
	return out
}

// encodeLine returns a line of JSON that keeps <, > and &.
func encodeLine(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil // cannot happen with texts and numbers
	}
	return b.Bytes()
}

package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/passbook-run/passbook/internal/adapter"
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
	if a, ok := adapter.Find(kind); !ok || !a.Ends {
		return nil
	}
	var final []byte
	var total omission
	for o := range objects(stdout) {
		final = o
		total.Lines, total.Bytes = total.Lines+1, total.Bytes+len(o)
	}
	if final == nil {
		return nil
	}
	last := redactedLine(final, hide) // the summary of the call
	var out []byte
	omitted := omission{Lines: total.Lines - 1, Bytes: total.Bytes - len(final)}
	for o := range objects(stdout) {
		if omitted.Lines == 0 || len(out)+len(last)+len(o) > maxEnvelope {
			break
		}
		omitted.Lines, omitted.Bytes = omitted.Lines-1, omitted.Bytes-len(o)
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

// objects yields the JSON objects in an output, compact. Other lines are skipped; an incomplete object ends the search.
// Only one is in memory: an output may consist of millions.
func objects(out []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		decoder, from := json.NewDecoder(bytes.NewReader(out)), 0
		for at := 0; ; {
			at += len(out[at:]) - len(bytes.TrimLeft(out[at:], " \t\r\n"))
			if at == len(out) {
				return
			}
			var value json.RawMessage
			err := io.EOF
			if out[at] == '{' || out[at] == '[' {
				err = decoder.Decode(&value)
			}
			switch {
			case errors.Is(err, io.ErrUnexpectedEOF):
				return
			case err != nil:
				line, _, _ := bytes.Cut(out[at:], []byte{'\n'})
				at = min(len(out), at+len(line)+1)
				decoder, from = json.NewDecoder(bytes.NewReader(out[at:])), at
				continue
			}
			at = from + int(decoder.InputOffset())
			if !yieldObjects(value, yield) {
				return
			}
		}
	}
}

// yieldObjects yields the objects of an array, or the object itself, compact. It reports whether to continue.
func yieldObjects(value json.RawMessage, yield func([]byte) bool) bool {
	if value[0] == '{' {
		var b bytes.Buffer
		return json.Compact(&b, value) != nil || yield(b.Bytes())
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	if _, err := decoder.Token(); err != nil {
		return true
	}
	for decoder.More() {
		var part json.RawMessage
		if decoder.Decode(&part) != nil {
			return true
		}
		if part[0] == '{' && !yieldObjects(part, yield) {
			return false
		}
	}
	return true
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

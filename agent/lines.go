package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// What is kept of an envelope, in bytes.
const (
	maxEnvelope = 1 << 20  // all lines
	maxRead     = 16 << 20 // a line that is longer is not looked into
	maxWord     = 16 << 10 // a text in a line that is longer than maxEnvelope
)

// Envelope gives what an agent of a kind has reported: every JSON object of its output, and of arrays in it, as it came but for white space, one a
// line. hide is applied to all of its text. What is too large is left out, and a line of type "passbook" says so. nil: there is no object, or the kind
// has none.
func Envelope(kind string, stdout []byte, hide func(string) string) []byte {
	if kind != KindJSON {
		return nil
	}
	all := objects(stdout)
	if len(all) == 0 {
		return nil
	}
	last := shown(all[len(all)-1], hide) // sums the call up
	var out []byte
	var omitted leftOut
	for _, o := range all[:len(all)-1] {
		if omitted.Lines > 0 || len(out)+len(last)+len(o) > maxEnvelope {
			omitted.Lines, omitted.Bytes = omitted.Lines+1, omitted.Bytes+len(o)
			continue
		}
		out = append(out, shown(o, hide)...)
	}
	if omitted.Lines > 0 {
		out = append(out, omitted.line()...)
	}
	return append(out, last...)
}

// leftOut is the line that stands for what is not kept.
type leftOut struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Lines   int    `json:"lines"`
	Bytes   int    `json:"bytes"`
}

func (l leftOut) line() []byte {
	l.Type, l.Subtype = "passbook", "left_out"
	return encoded(l)
}

// objects finds the JSON objects in an output. What is no JSON is passed over line by line; an object that breaks off ends the search.
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
		all = append(all, flat(value)...)
	}
	return all
}

// flat gives the objects of an array, or the object itself, each compact.
func flat(value json.RawMessage) []json.RawMessage {
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

// shown is an object as a line for readers. Where hiding breaks the object, its text is kept as text.
func shown(object []byte, hide func(string) string) []byte {
	if len(object) > maxRead {
		return leftOut{Lines: 1, Bytes: len(object)}.line()
	}
	escaped := words(object, func(literal []byte) bool { return bytes.IndexByte(literal, '\\') >= 0 }, hide)
	line := []byte(hide(string(escaped)))
	if !json.Valid(line) {
		line = bytes.TrimSuffix(encoded(map[string]string{"type": "passbook", "subtype": "text", "text": string(line)}), []byte{'\n'})
	}
	if len(line) > maxEnvelope {
		line = words(line, func(literal []byte) bool { return len(literal) > maxWord }, cut)
	}
	if len(line) > maxEnvelope {
		return leftOut{Lines: 1, Bytes: len(object)}.line()
	}
	return append(bytes.ToValidUTF8(line, []byte("\uFFFD")), '\n')
}

func cut(word string) string {
	head := strings.ToValidUTF8(word[:min(len(word), maxWord)], "")
	return fmt.Sprintf("%s… [passbook: %d more bytes left out]", head, len(word)-len(head))
}

// words changes the strings of compact JSON, those that are wanted. All others stay as they are written.
func words(object []byte, wanted func(literal []byte) bool, change func(string) string) []byte {
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
				literal = bytes.TrimSuffix(encoded(changed), []byte{'\n'})
			}
		}
		out, i = append(out, literal...), end
	}
	return out
}

// encoded is a line of JSON that keeps <, > and &.
func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil // texts and numbers can be encoded
	}
	return b.Bytes()
}

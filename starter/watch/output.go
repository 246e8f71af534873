package watch

import (
	"encoding/json"
	"io"
	"strings"
	"unicode"

	"github.com/passbook-run/passbook/durable"
)

// tailBytes is how much of an agent's output is read.
const tailBytes = 16 << 10

// Tail reads the end of what an agent has said so far: its lines, without anything that a terminal would obey. Of the envelope of claude it gives the answer in it.
func Tail(file string) ([]string, error) {
	f, err := durable.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, fi.Size()-tailBytes)
	raw, err := io.ReadAll(io.NewSectionReader(f, from, tailBytes))
	if err != nil {
		return nil, err
	}
	text := string(raw)
	if from == 0 {
		text = answer(text)
	}
	return plain(text), nil
}

// answer is what an envelope holds; any other text is its own answer.
func answer(text string) string {
	var envelope struct {
		Result *string `json:"result"`
	}
	if json.Unmarshal([]byte(text), &envelope) == nil && envelope.Result != nil {
		return *envelope.Result
	}
	return text
}

// plain splits a text into lines and takes out of them what moves a cursor or rings a bell: the text comes from an agent, and the terminal is a person's.
func plain(text string) []string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "�")
	var out []string
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.Map(func(r rune) rune {
			switch {
			case r == '\t':
				return ' '
			case !unicode.IsPrint(r) && r != ' ':
				return -1
			}
			return r
		}, line)
		if strings.TrimSpace(line) != "" {
			out = append(out, line)
		}
	}
	return out
}

package watch

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode"

	"github.com/passbook-run/passbook/internal/regular"
)

// tailBytes is how much of the output of an agent is read.
const tailBytes = 16 << 10

// Tail returns the last lines of the output of an agent, without control characters. It does not wait for a pipe. Of
// an envelope of claude it returns the answer.
func Tail(file string) (lines []string, err error) {
	f, err := regular.OpenFile(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
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

// answer returns the answer in an envelope; any other text is returned unchanged.
func answer(text string) string {
	var envelope struct {
		Result *string `json:"result"`
	}
	if json.Unmarshal([]byte(text), &envelope) == nil && envelope.Result != nil {
		return *envelope.Result
	}
	return text
}

// plain splits a text into lines and removes control characters: agent output must not control the terminal.
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

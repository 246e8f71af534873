// Package terminal makes text of agents and of foreign files safe for a terminal. Such text must not move the cursor,
// change the title, write to the clipboard, or show its characters in another order.
package terminal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Unsafe reports whether a character controls the terminal or the order of the text around it: C0 and C1 controls,
// separators of lines and paragraphs, and marks of direction. Tab and line feed are not.
func Unsafe(r rune) bool {
	const separators, marks = "\u2028\u2029", "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
	if r == '\t' || r == '\n' {
		return false
	}
	return unicode.IsControl(r) || strings.ContainsRune(separators+marks, r)
}

// Escape returns the character as in a Go string. Characters above a space have the form of JSON too.
func Escape(r rune) string {
	if r == '\x7f' {
		return `\u007f`
	}
	return strings.Trim(strconv.QuoteRune(r), "'")
}

// Safe escapes unsafe characters and bytes that are not UTF-8. A carriage return before a line feed is kept.
func Safe(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, Unsafe) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\r' && strings.HasPrefix(text[i+1:], "\n"):
			b.WriteByte('\r')
		case Unsafe(r):
			b.WriteString(Escape(r))
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// Writer escapes what is written to it, as [Safe] does.
type Writer struct {
	to   io.Writer
	held []byte // the beginning of a character, or a carriage return
}

// NewWriter returns a writer that writes safe text to another one.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Unwrap returns the writer below, for output that controls the terminal itself.
func (w *Writer) Unwrap() io.Writer { return w.to }

func (w *Writer) Write(p []byte) (int, error) {
	text := append(w.held, p...)
	n := len(text) - unfinished(text)
	w.held = append([]byte(nil), text[n:]...)
	if _, err := io.WriteString(w.to, Safe(string(text[:n]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what is held back.
func (w *Writer) Flush() error {
	text := Safe(string(w.held))
	w.held = nil
	_, err := io.WriteString(w.to, text)
	return err
}

// unfinished returns the number of bytes at the end that depend on what follows.
func unfinished(text []byte) int {
	if n := len(text); n > 0 && text[n-1] == '\r' {
		return 1
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}

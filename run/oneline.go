package run

import (
	"strings"

	"github.com/passbook-run/passbook/internal/terminal"
)

// OneLine puts a text of an agent or an operator on one line and makes it safe for a terminal: line feeds and the
// characters that [terminal.Unsafe] lists are written as in Go, \n and \x1b. Empty lines at the end are left out.
func OneLine(text string) string {
	control := func(r rune) bool { return r == '\n' || terminal.Unsafe(r) }
	text = strings.TrimRight(text, "\r\n")
	if !strings.ContainsFunc(text, control) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if control(r) {
			b.WriteString(terminal.Escape(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Cut shortens a text to a maximum number of characters, and shows that it was longer.
func Cut(text string, most int) string {
	if len(text) <= most { // in bytes, so no more in characters
		return text
	}
	r := []rune(text)
	if len(r) <= most {
		return text
	}
	return string(r[:most-1]) + "…"
}

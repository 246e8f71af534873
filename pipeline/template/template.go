// Package template finds the placeholders of a prompt file: {{references}}, {{n}}, {{with.focus}}.
//
// It is pure, and knows only names: which parts and variables there are, not what they hold. Filling goes over the pieces once, so what
// is put in is never looked at again. \{{name}} stands for the text {{name}}.
package template

import (
	"regexp"
	"strings"
)

// withPrefix begins the placeholders of a role's own words.
const withPrefix = "with."

// Piece is literal text, or a placeholder when Name is set.
type Piece struct {
	Text string // the text itself, of a placeholder as it was written
	Name string // "references", "with.focus"
	Line int    // where it begins, from 1
}

var placeholder = regexp.MustCompile(`\\?\{\{[ \t]*([A-Za-z][A-Za-z0-9._-]*)[ \t]*\}\}`)

// Scan cuts src into pieces. Their texts, escapes aside, are src again.
func Scan(src string) []Piece {
	var pieces []Piece
	done, line := 0, 1
	add := func(text, name string) {
		if text != "" {
			pieces = append(pieces, Piece{Text: text, Name: name, Line: line})
			line += strings.Count(text, "\n")
		}
	}
	for _, m := range placeholder.FindAllStringSubmatchIndex(src, -1) {
		add(src[done:m[0]], "")
		done = m[1]
		if src[m[0]] == '\\' {
			add(src[m[0]+1:m[1]], "")
		} else {
			add(src[m[0]:m[1]], src[m[2]:m[3]])
		}
	}
	add(src[done:], "")
	return pieces
}

// WithKey is the key of a {{with.KEY}} placeholder.
func WithKey(name string) (key string, ok bool) {
	return strings.CutPrefix(name, withPrefix)
}

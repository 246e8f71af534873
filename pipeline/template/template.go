// Package template finds the placeholders of a prompt file: {{references}}, {{n}}, {{with.focus}}.
//
// It has no side effects and knows only the names of parts and variables, not their values. Values are filled in once
// and never scanned for placeholders again. \{{name}} is an escape for the text {{name}}.
package template

import (
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// withPrefix begins the placeholders of a role's `with` entries.
const withPrefix = "with."

// Piece is literal text, or a placeholder when Name is set.
type Piece struct {
	Text string // literal text, or the placeholder as written
	Name string // "references", "with.focus", "plan.files"
	JSON bool   // written as JSON: {{plan.files | json}}
	Line int    // where it begins, from 1
}

var placeholder = lazyregexp.New(`\\?\{\{[ \t]*([A-Za-z][A-Za-z0-9._-]*)[ \t]*(\|[ \t]*json[ \t]*)?\}\}`)

// Scan splits src into pieces. Except for escapes, their texts concatenated equal src.
func Scan(src string) []Piece {
	var pieces []Piece
	done, line := 0, 1
	add := func(text, name string, json bool) {
		if text != "" {
			pieces = append(pieces, Piece{Text: text, Name: name, JSON: json, Line: line})
			line += strings.Count(text, "\n")
		}
	}
	for _, m := range placeholder.FindAllStringSubmatchIndex(src, -1) {
		add(src[done:m[0]], "", false)
		done = m[1]
		if src[m[0]] == '\\' {
			add(src[m[0]+1:m[1]], "", false)
		} else {
			add(src[m[0]:m[1]], src[m[2]:m[3]], m[4] >= 0)
		}
	}
	add(src[done:], "", false)
	return pieces
}

// WithKey returns the key of a {{with.KEY}} placeholder.
func WithKey(name string) (key string, ok bool) {
	return strings.CutPrefix(name, withPrefix)
}

package template

import (
	"fmt"
	"slices"
	"strings"
)

// Parts lists the parts of a prompt that a template may place, in their order when it does not place them.
func Parts() []string {
	return []string{"context", "references", "notes", "replies", "pictures", "artifact", "files", "content"}
}

// Feedback places the operator's feedback for an extra round.
const Feedback = "feedback"

// Parent places the brief of the run that this one follows up.
const Parent = "parent"

// Variables lists the placeholders for a word or a number. {{with.KEY}} is not in this list.
func Variables() []string {
	return []string{"task", "base", "description", "role", "pass", "passes", "set", "theme", "n", "max", "item"}
}

// Problem is an unknown placeholder.
type Problem struct {
	Line int
	What string
}

// Check lists the placeholders of src that have no value. with lists the keys that the role defines; nil allows any
// key.
func Check(src string, with []string) []Problem {
	var out []Problem
	for _, p := range Scan(src) {
		if what := unknown(p, with); what != "" {
			out = append(out, Problem{Line: p.Line, What: what})
		}
	}
	return out
}

func unknown(p Piece, with []string) string {
	known := slices.Concat(Parts(), []string{Parent, Feedback}, Variables())
	key, isWith := WithKey(p.Name)
	switch {
	case p.Name == "", slices.Contains(known, p.Name):
		return ""
	case isWith && (with == nil || slices.Contains(with, key)):
		return ""
	case isWith:
		return fmt.Sprintf("%s has no value; write with: {%s: ...} in the role, or drop it here", p.Text,
			key)
	default:
		return fmt.Sprintf(`%s is not a placeholder; write one of {{%s}} or {{with.KEY}}, or \%s for the text itself`,
			p.Text, strings.Join(known, "}}, {{"), p.Text)
	}
}

// Placed lists the parts that src places itself, in the order of Parts.
func Placed(src string) []string {
	found := map[string]bool{}
	for _, p := range Scan(src) {
		found[p.Name] = true
	}
	var placed []string
	for _, part := range Parts() {
		if found[part] {
			placed = append(placed, part)
		}
	}
	return placed
}

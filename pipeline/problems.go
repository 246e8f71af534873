package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one problem of a definition, or of a prompt file that it names. What describes the problem and the
// correction.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column,omitempty"` // in characters from 1; 0 if only the line is known
	What   string `json:"what"`
}

func (p Problem) String() string {
	if p.Column == 0 {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What)
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.What)
}

// Problems are all problems of a definition: first those of the file itself by line, then those of its prompts.
type Problems []Problem

// Error lists the problems, one on each line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// sorted puts the problems of file first. An aliased node is read more than once, so equal problems of a line are kept
// once.
func (ps Problems) sorted(file string) Problems {
	slices.SortFunc(ps, func(a, b Problem) int {
		if a.File != b.File && (a.File == file || b.File == file) {
			return cmp.Compare(btoi(a.File != file), btoi(b.File != file))
		}
		byPlace := cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		return cmp.Or(byPlace, cmp.Compare(a.What, b.What))
	})
	seen := map[Problem]bool{}
	return slices.DeleteFunc(ps, func(p Problem) bool {
		p.Column = 0
		again := seen[p]
		seen[p] = true
		return again
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

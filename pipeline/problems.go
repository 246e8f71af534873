package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong with a definition, or with a prompt file it names. What says what is wrong and what to write instead.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line"`
	What string `json:"what"`
}

func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What) }

// Problems are all that is wrong with a definition: those of the file itself by line, then those of its prompts.
type Problems []Problem

// Error gives one line a problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// sorted puts the problems of file first. An aliased piece of YAML is read more than once, so equal problems are kept once.
func (ps Problems) sorted(file string) Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if a.File != b.File && (a.File == file || b.File == file) {
			return cmp.Compare(btoi(a.File != file), btoi(b.File != file))
		}
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return once(ps)
}

func once(ps Problems) Problems {
	seen := map[Problem]bool{}
	return slices.DeleteFunc(ps, func(p Problem) bool {
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

package main

import (
	"fmt"
	"go/ast"
	"strings"
)

// kind is what a mutant changes.
type kind string

const (
	operator  kind = "operator"
	constant  kind = "constant"
	dropped   kind = "dropped"
	exchanged kind = "exchanged"
	fault     kind = "fault" // of the file that is planted
)

// mutant is one change of one function.
type mutant struct {
	id       int
	name     string // of a named fault
	pkg      string // folder below the module's root
	function string
	kind     kind
	file     string // below the module's root
	line     int
	from, to int    // bytes of the file that text replaces
	old      string // these bytes
	text     string
	decl     *ast.FuncDecl
	nth      int  // of the same changes in this function, from 1
	broken   bool // does not compile

	outcome outcome
	by      string // the test that detected it
}

type outcome string

const (
	killed     outcome = "killed"
	survived   outcome = "survived"
	unreached  outcome = "unreached" // no test executes the statement
	undecided  outcome = "undecided" // not all tests that reach it have run; it does not count
	equivalent outcome = "equivalent"
)

// key identifies a mutant in equivalent.txt, whatever stands above it in the file.
func (m *mutant) key() string {
	key := strings.Join([]string{m.pkg, m.function, m.short(m.old) + " => " + m.short(m.text)}, " | ")
	if m.nth > 1 {
		key += fmt.Sprintf(" | %d", m.nth)
	}
	return key
}

func (m *mutant) String() string {
	name := ""
	if m.name != "" {
		name = m.name + ": "
	}
	return fmt.Sprintf("%s%s:%d %s | %s | %s => %s", name, m.file, m.line, m.kind, m.function, m.short(m.old),
		m.short(m.text))
}

func (m *mutant) short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 120 {
		s = s[:120] + "…"
	}
	return s
}

func compiling(all []*mutant) []*mutant {
	var ok []*mutant
	for _, m := range all {
		if !m.broken {
			ok = append(ok, m)
		}
	}
	return ok
}

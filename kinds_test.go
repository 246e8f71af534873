package passbook_test

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// kindSwitches are the functions outside package run that may distinguish kinds of events, and what each derives from
// the few that it names. Whatever applies to every kind is a column of the table in package run.
var kindSwitches = map[string]string{
	"evidence":      "files of a run directory",
	"evidenceFiles": "files that a revert moves away",
	"evident":       "files of a run directory",
	"laneEvent":     "lanes of the evidence",
	"fold":          "records of state.json",
	"Fold":          "header of meta.json",
	"decideErrors":  "error records",
	"Log":           "rows that refer to files",
	"due":           "when state.json is written",
	"verifies":      "when the journal is verified",
	"HasEnded":      "whether the last start has ended",
	"note":          "what a check compares files with",
	"take":          "versions of the working tree",
	"history":       "charts of the report",
	"follow":        "terms that the texts of the log name",
	"settledOf":     "last steps of the live screen",
	"add":           "tables of the evidence",
	"Projected":     "counters of metrics",
}

// TestKindsAreDistinguishedInTheirTable finds every switch over kinds of events outside package run.
func TestKindsAreDistinguishedInTheirTable(t *testing.T) {
	found := map[string]bool{}
	for _, s := range sources(t) {
		if strings.HasPrefix(s.path, "run/") || strings.HasPrefix(s.path, "test/") {
			continue
		}
		for _, name := range switchesOverKinds(s.file) {
			found[name] = true
			require.Contains(t, kindSwitches, name,
				"%s: switch over kinds of events; add a column to the table in package run", s.path)
		}
	}
	for name := range kindSwitches {
		require.True(t, found[name], "%s has no switch over kinds: remove it from kindSwitches", name)
	}
}

// switchesOverKinds are the functions of a file that have a switch with a kind of event as a case.
func switchesOverKinds(file *ast.File) []string {
	var found []string
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		over := false
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CaseClause); ok {
				for _, value := range c.List {
					over = over || isKind(value)
				}
			}
			return true
		})
		if over {
			found = append(found, f.Name.Name)
		}
	}
	return found
}

func isKind(value ast.Expr) bool {
	s, ok := value.(*ast.SelectorExpr)
	return ok && fmt.Sprint(s.X) == "run" && strings.HasPrefix(s.Sel.Name, "Kind")
}

package passbook_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCommandsInMessagesAreQuoted: an operator types the command of a message in a shell, and paths may hold spaces.
func TestCommandsInMessagesAreQuoted(t *testing.T) {
	var found []string
	for _, s := range sources(t) {
		found = append(found, unquoted(s)...)
	}
	require.Empty(t, found, "wrap the argument in shell.Quote, or make the command with shell.Sprintf")
	const format = `package p; var _ = fmt.Errorf("%s is damaged: starter check %s", d.Root, ` // and the last argument
	require.Len(t, unquoted(parsed(t, "planted.go", format+"d.Root)")), 1)
	require.Empty(t, unquoted(parsed(t, "planted.go", format+"shell.Quote(d.Root))")))
}

// source is a Go file of the tree.
type source struct {
	path, text string
	files      *token.FileSet
	file       *ast.File
}

func parsed(t *testing.T, path, text string) source {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	require.NoError(t, err)
	return source{path, text, files, file}
}

// sources returns the Go files of the tree, without tests.
func sources(t *testing.T) (all []source) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			all = append(all, parsed(t, filepath.ToSlash(path), read(t, path)))
		}
		return nil
	}))
	require.Greater(t, len(all), 500)
	return all
}

// typing is text before an argument that makes it a word of a command. The program's own name may be an argument, too.
var typing = regexp.MustCompile("(?:\\bstarter [a-z]|\\bgit -C |\\bmv |\x00 [a-z])[^.:;(`]*$")

// unquoted names the arguments of commands in a source file that a shell may not read as they are.
func unquoted(s source) (found []string) {
	offset := func(p token.Pos) int { return s.files.Position(p).Offset }
	text := func(n ast.Node) string { return s.text[offset(n.Pos()):offset(n.End())] }
	quoted := map[string]bool{}
	safe := func(n ast.Expr) bool {
		word := text(n)
		return quoted[word] || strings.HasPrefix(word, "shell.") || strings.HasSuffix(strings.ToLower(word), "runid") ||
			word == "program()"
	}
	var constant func(n ast.Expr) (string, bool)
	constant = func(n ast.Expr) (string, bool) {
		if sum, ok := n.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
			x, isX := constant(sum.X)
			y, isY := constant(sum.Y)
			return x + y, isX && isY
		}
		return literal(n)
	}
	report := func(n ast.Node) { found = append(found, s.files.Position(n.Pos()).String()+": "+text(n)) }
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, right := range n.Rhs {
				if strings.HasPrefix(text(right), "shell.Quote(") && len(n.Lhs) == len(n.Rhs) {
					quoted[text(n.Lhs[i])] = true
				}
			}
		case *ast.BinaryExpr:
			if _, fixed := constant(n.Y); fixed {
				return true
			}
			before, ok := constant(n.X)
			if ok && n.Op == token.ADD && typing.MatchString(before) && strings.HasSuffix(before, " ") && !safe(n.Y) {
				report(n.Y)
			}
		case *ast.CallExpr:
			if strings.HasPrefix(text(n.Fun), "shell.") {
				return true
			}
			for i, arg := range n.Args {
				if format, ok := constant(arg); ok && strings.Contains(format, "%") {
					for _, a := range wordsOf(format, n.Args[i+1:], text) {
						if !safe(a) {
							report(a)
						}
					}
					break
				}
			}
		}
		return true
	})
	return found
}

var verb = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z%]`)

// wordsOf are the arguments of a format that are in a command as text.
func wordsOf(format string, args []ast.Expr, text func(ast.Node) string) (words []ast.Expr) {
	before, at := "", 0
	for _, m := range verb.FindAllStringIndex(format, -1) {
		before, at = before+format[at:m[0]], m[1]
		if format[m[1]-1] == '%' {
			continue
		}
		if len(args) == 0 {
			return words
		}
		arg := args[0]
		args = args[1:]
		if text(arg) == "program()" {
			before += "\x00"
			continue
		}
		if format[m[1]-1] == 's' && typing.MatchString(before) && strings.HasSuffix(before, " ") {
			words = append(words, arg)
		}
		before += "x"
	}
	return words
}

// literal returns the value of a string literal.
func literal(n ast.Node) (string, bool) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// kindSwitches are the functions outside package run that may distinguish kinds of events, and what each derives from
// the few that it names. Whatever applies to every kind is a column of the table in package run.
var kindSwitches = map[string]string{
	"derive":       "files of a run directory",
	"log":          "rows that refer to files",
	"lane":         "costs of lanes in the record",
	"laneEvent":    "lanes of the record",
	"fold":         "records of state.json",
	"Fold":         "header of meta.json",
	"decideErrors": "error records",
	"verifies":     "when the journal is verified",
	"HasEnded":     "whether the last start has ended",
	"take":         "versions of the working tree",
	"history":      "charts of the report",
	"follow":       "terms that the texts of the log name",
	"settledOf":    "last steps of the live screen",
	"add":          "tables of the record",
	"Projected":    "counters of metrics",
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
			assert.Contains(t, kindSwitches, name,
				"%s: switch over kinds of events; add a column to the table in package run", s.path)
		}
	}
	for name := range kindSwitches {
		assert.True(t, found[name], "%s has no switch over kinds: remove it from kindSwitches", name)
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

// TestActionsArePinned: a tag of another repository can be moved, a commit cannot.
func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	uses := regexp.MustCompile(`(?m)uses: *(\S+)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			require.Regexp(t, `^[a-z-]+/[a-z-]+@[0-9a-f]{40}$`, m[1], file)
		}
	}
}

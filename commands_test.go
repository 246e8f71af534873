package passbook_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCommandsInMessagesAreQuoted: what a message tells people to type is read by a shell, and paths may hold spaces.
func TestCommandsInMessagesAreQuoted(t *testing.T) {
	var found []string
	require.NoError(t, filepath.WalkDir(".", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found = append(found, unquoted(t, path, string(src))...)
		return nil
	}))
	require.Empty(t, found, "wrap the argument in shell.Quote, or make the command with shell.Sprintf")
}

func TestUnquotedCommandIsFound(t *testing.T) {
	for _, row := range []struct {
		name, expr string
		seen       bool
	}{
		{"a directory", `fmt.Errorf("%s is damaged: starter check %s", d.Root, d.Root)`, true},
		{"quoted", `fmt.Errorf("%s is damaged: starter check %s", d.Root, shell.Quote(d.Root))`, false},
		{"as this program was called", `fmt.Sprintf("Look: %s status %s", program(), d.Root)`, true},
		{"a flag", `fmt.Sprintf("starter rebuild %s --output-dir %s", c.RunID, d.Root)`, true},
		{"another program", `fmt.Sprintf("merge it: git -C %s merge x", root)`, true},
		{"joined", `"starter resume " + d.Root`, true},
		{"a format in two parts", `fmt.Errorf("%s is damaged: starter "+"check %s", d.Root, d.Root)`, true},
		{"a command in two parts", `"run: starter " + "resume --force"`, false},
		{"an id", `"starter resume " + c.RunID`, false},
		{"no command", `fmt.Sprintf("%s cannot be read; starter does not start", d.Root)`, false},
		{"another sentence", `fmt.Sprintf("see starter config: %s is not a folder", d.Root)`, false},
		{"quoted before", `fmt.Sprintf("starter resume %s", where)`, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := unquoted(t, "planted.go", "package planted\nfunc f() {\n where := shell.Quote(d.Root)\n _ = "+
				row.expr+"\n}\n")
			require.Equal(t, row.seen, len(got) > 0, "%v", got)
		})
	}
}

// typing is text before an argument that makes it a word of a command. The program's own name may be an argument, too.
var typing = regexp.MustCompile("(?:\\bstarter [a-z]|\\bgit -C |\\bmv |\x00 [a-z])[^.:;(`]*$")

// unquoted names the arguments of commands in a source file that a shell may not read as they are.
func unquoted(t *testing.T, path, src string) (found []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, src, 0)
	require.NoError(t, err)
	text := func(n ast.Node) string { return src[files.Position(n.Pos()).Offset:files.Position(n.End()).Offset] }
	quoted := map[string]bool{}
	safe := func(n ast.Expr) bool {
		word := text(n)
		return quoted[word] || strings.HasPrefix(word, "shell.") || strings.HasSuffix(strings.ToLower(word), "runid") ||
			word == "program()"
	}
	var literal func(n ast.Expr) (string, bool)
	literal = func(n ast.Expr) (string, bool) {
		if sum, ok := n.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
			x, isX := literal(sum.X)
			y, isY := literal(sum.Y)
			return x + y, isX && isY
		}
		l, ok := n.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return "", false
		}
		s, err := strconv.Unquote(l.Value)
		return s, err == nil
	}
	say := func(n ast.Node) { found = append(found, files.Position(n.Pos()).String()+": "+text(n)) }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, right := range n.Rhs {
				if strings.HasPrefix(text(right), "shell.Quote(") && len(n.Lhs) == len(n.Rhs) {
					quoted[text(n.Lhs[i])] = true
				}
			}
		case *ast.BinaryExpr:
			if _, constant := literal(n.Y); constant {
				return true
			}
			if s, ok := literal(n.X); ok && n.Op == token.ADD && typing.MatchString(s) && strings.HasSuffix(s, " ") &&
				!safe(n.Y) {
				say(n.Y)
			}
		case *ast.CallExpr:
			if strings.HasPrefix(text(n.Fun), "shell.") {
				return true
			}
			for i, arg := range n.Args {
				if format, ok := literal(arg); ok && strings.Contains(format, "%") {
					for _, a := range wordsOf(format, n.Args[i+1:], text) {
						if !safe(a) {
							say(a)
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

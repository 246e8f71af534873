package passbook_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Maximum sizes of Go code; that of functions does not apply to tests. A tab is one column.
const (
	maxFile     = 500 // lines
	maxFunction = 80  // lines
	maxLine     = 120 // columns
)

func TestCodeStaysWithinItsLimits(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "*.go").Output()
	require.NoError(t, err)
	var found []string
	for path := range strings.FieldsSeq(string(out)) {
		source, err := os.ReadFile(path)
		if os.IsNotExist(err) || strings.Contains(path, "testdata/") {
			continue
		}
		require.NoError(t, err)
		found = append(found, beyondLimits(t, path, string(source))...)
	}
	require.Empty(t, found)
}

// Each kind of excess is reported.
func TestExcessIsFound(t *testing.T) {
	body := strings.Repeat("\tprintln()\n", maxFunction-2)
	require.Empty(t, beyondLimits(t, "p.go", "package p\nfunc short() {\n"+body+"}\n"))
	require.Equal(t, []string{"p.go:2: function long has 81 lines"},
		beyondLimits(t, "p.go", "package p\nfunc long() {\n"+body+"\tprintln()\n}\n"))
	require.Equal(t, []string{"p.go:2: the line has 121 columns"},
		beyondLimits(t, "p.go", "package p\n// "+strings.Repeat("ä", maxLine-2)+"\n"))
	for _, name := range []string{"p.go", "p_test.go"} {
		require.Equal(t, []string{name + ": the file has 501 lines"},
			beyondLimits(t, name, "package p\n"+strings.Repeat("\n", maxFile)))
	}
}

// A test may have a long line only where a raw string literal of several lines crosses the limit.
func TestLongLinesOfTestsAreFound(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for name, row := range map[string]struct {
		code  string
		lines []string
	}{
		"comment":             {"// " + long, []string{"2: the line has 123 columns"}},
		"string":              {"const s = \"" + long + "\"", []string{"2: the line has 132 columns"}},
		"raw string":          {"const s = `" + long + "`", []string{"2: the line has 132 columns"}},
		"first line of many":  {"const s = `" + long + "\ny`", nil},
		"line of many":        {"const s = `\n" + long + "x\n`", nil},
		"last line of many":   {"const s = `\n" + long + "x`", nil},
		"code after the last": {"const s = `\n` + \"" + long + "\"", []string{"3: the line has 126 columns"}},
		"comment after many":  {"const s = `\n`\n// " + long, []string{"4: the line has 123 columns"}},
		"quote in a comment":  {"// `\n// " + long + "\n// `", []string{"3: the line has 123 columns"}},
	} {
		var want []string
		for _, line := range row.lines {
			want = append(want, "p_test.go:"+line)
		}
		require.Equal(t, want, beyondLimits(t, "p_test.go", "package p\n"+row.code+"\n"), name)
	}
	require.Equal(t, []string{"p.go:3: the line has 122 columns"},
		beyondLimits(t, "p.go", "package p\nconst s = `\n"+long+"x`\n"))
}

func beyondLimits(t *testing.T, path, source string) []string {
	t.Helper()
	var found []string
	isTest := strings.HasSuffix(path, "_test.go")
	n, offset := 0, 0
	for line := range strings.Lines(source) {
		n++
		begin := offset
		offset += len(line)
		runes := []rune(strings.TrimSuffix(line, "\n"))
		if len(runes) <= maxLine || isTest && inRawString(t, source, begin+len(string(runes[:maxLine]))) {
			continue
		}
		found = append(found, fmt.Sprintf("%s:%d: the line has %d columns", path, n, len(runes)))
	}
	if n > maxFile {
		found = append(found, fmt.Sprintf("%s: the file has %d lines", path, n))
	}
	if isTest {
		return found
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		begin, end := fset.Position(f.Pos()).Line, fset.Position(f.End()).Line
		if lines := end - begin + 1; lines > maxFunction {
			found = append(found, fmt.Sprintf("%s:%d: function %s has %d lines", path, begin, f.Name.Name, lines))
		}
	}
	return found
}

// inRawString reports whether the byte at the offset belongs to a raw string literal of several lines. Nothing but
// the value of such a literal can shorten its lines.
func inRawString(t *testing.T, source string, offset int) bool {
	t.Helper()
	file := token.NewFileSet().AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, []byte(source), func(at token.Position, message string) { t.Fatal(at, message) }, 0)
	for {
		pos, kind, text := s.Scan()
		begin := file.Offset(pos)
		if kind == token.EOF || begin > offset {
			return false
		}
		if kind == token.STRING && offset < begin+len(text) {
			return text[0] == '`' && strings.Contains(text, "\n")
		}
	}
}

package passbook_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Maximum sizes of Go code; for tests, only that of files applies. A tab is one column.
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
	require.Empty(t, beyondLimits(t, "p_test.go", "package p\n// "+strings.Repeat("x", maxLine)+"\n"))
}

func beyondLimits(t *testing.T, path, source string) []string {
	t.Helper()
	var found []string
	n := 0
	for line := range strings.Lines(source) {
		n++
		columns := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
		if columns > maxLine && !strings.HasSuffix(path, "_test.go") {
			found = append(found, fmt.Sprintf("%s:%d: the line has %d columns", path, n, columns))
		}
	}
	if n > maxFile {
		found = append(found, fmt.Sprintf("%s: the file has %d lines", path, n))
	}
	if strings.HasSuffix(path, "_test.go") {
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

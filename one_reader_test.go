package passbook_test

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// contentReaders are the functions and methods that return the contents of a file.
var contentReaders = []string{"Open", "OpenFile", "OpenAs", "OpenInRoot", "ReadFile", "ReadRaw", "ReadJSON", "readFile"}

// otherReaders are the places that read events.jsonl without run.Reader.
var otherReaders = map[string]string{
	"internal/projector/damage.go ReadRaw": "copies a damaged file",
}

// TestOneReaderOfEvents: every program reads the lines of events.jsonl through run.Reader, which only package journal
// opens for files.
func TestOneReaderOfEvents(t *testing.T) {
	var found []string
	excused := map[string]bool{}
	for _, s := range sources(t) {
		for _, call := range readersOfEvents(s.file, path.Dir(s.path) == "internal/journal") {
			if _, ok := otherReaders[s.path+" "+call]; ok {
				excused[s.path+" "+call] = true
				continue
			}
			found = append(found, s.path+": "+call)
		}
	}
	require.Empty(t, found, "read events.jsonl with rundir.Dir.Lines, or with package journal")
	for place := range otherReaders {
		require.True(t, excused[place], "%s reads no events: remove the exception", place)
	}
}

// readersOfEvents returns the functions that a file calls to read events.jsonl without package journal.
func readersOfEvents(file *ast.File, journal bool) []string {
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		from, _ := f.X.(*ast.Ident)
		named := func(pkg string) bool { return from != nil && from.Name == pkg }
		reads := slices.Contains(contentReaders, f.Sel.Name) && !named("journal") &&
			slices.ContainsFunc(call.Args, mentionsEvents)
		if reads || named("run") && f.Sel.Name == "NewReader" && !journal {
			found = append(found, f.Sel.Name)
		}
		return true
	})
	return found
}

func mentionsEvents(arg ast.Expr) bool {
	found := false
	ast.Inspect(arg, func(n ast.Node) bool {
		text, ok := literal(n)
		id, isName := n.(*ast.Ident)
		found = found || ok && strings.HasSuffix(text, "events.jsonl") || isName && id.Name == "EventsFile"
		return true
	})
	return found
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

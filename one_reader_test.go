package passbook_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// contentReaders are the functions and methods that return the contents of a file.
var contentReaders = []string{"Open", "OpenFile", "OpenAs", "OpenInRoot", "ReadFile", "ReadRaw", "ReadJSON", "readFile"}

// otherReaders are the places that read events.jsonl without run.Reader.
var otherReaders = map[string]string{
	"internal/projector/damage.go ReadRaw": "copies a damaged file",
	"tools/cluster/demo.go ReadFile":       "counts completed passes, in a module of its own",
}

// TestOneReaderOfEvents: every program reads the lines of events.jsonl through run.Reader, which only package journal
// opens for files.
func TestOneReaderOfEvents(t *testing.T) {
	var found []string
	excused := map[string]bool{}
	for file, parsed := range sources(t) {
		for _, call := range readersOfEvents(parsed, path.Dir(file) == "internal/journal") {
			if _, ok := otherReaders[file+" "+call]; ok {
				excused[file+" "+call] = true
				continue
			}
			found = append(found, file+": "+call)
		}
	}
	require.Empty(t, found, "read events.jsonl with rundir.Dir.Lines, or with package journal")
	for place := range otherReaders {
		require.True(t, excused[place], "%s is not there: remove the exception", place)
	}
}

func TestReadersOfEventsAreFound(t *testing.T) {
	for source, want := range map[string][]string{
		`os.ReadFile(filepath.Join(dir, "events.jsonl"))`: {"ReadFile"},
		`d.OpenFile(layout.EventsFile)`:                   {"OpenFile"},
		`run.NewReader(f, 0)`:                             {"NewReader"},
		`bufio.NewReader(f)`:                              nil,
		`journal.Open(d, layout.EventsFile, 0)`:           nil,
		`d.Stat(layout.EventsFile)`:                       nil,
		`d.ReadRaw(layout.MetaFile)`:                      nil,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", "package p; var _ = "+source, parser.SkipObjectResolution)
		require.NoError(t, err)
		require.Equal(t, want, readersOfEvents(file, false), source)
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

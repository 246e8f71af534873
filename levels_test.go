package passbook_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// stack are the packages of the run directory, bottom up.
var stack = []string{
	"internal/layout", "internal/journal", "internal/object", "rundir", "internal/records", "internal/projector",
	"internal/fsck",
}

// TestFilesOfTheStackHaveLevels orders the files of the stack in levels: a file refers only to files of lower levels.
// The methods of a type count as the type, wherever they are.
func TestFilesOfTheStackHaveLevels(t *testing.T) {
	imp := compiled(t, stack...)
	refs := references{}
	for _, name := range stack {
		files, err := filepath.Glob(name + "/*.go")
		require.NoError(t, err)
		fset, sources := token.NewFileSet(), []*ast.File(nil)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			sources = append(sources, file)
		}
		refs.add(t, module+"/"+name, imp, fset, sources)
	}
	require.Greater(t, len(refs), 60)
	require.Empty(t, refs.upward())
}

// A cycle of files is reported with the names that make it.
func TestUpwardReferencesAreFound(t *testing.T) {
	for name, row := range map[string]struct {
		a, b string
		want []string
	}{
		"down":                {"func A() { B() }", "func B() {}", nil},
		"methods of one type": {"type A struct{}; func (a A) one() { a.two() }", "func (a A) two() { a.one() }", nil},
		"functions": {"func A() { B() }", "func B() { A() }",
			[]string{"a.go -> b.go (B)", "b.go -> a.go (A)"}},
		"a type and its value": {"type A int; var _ = b", "var b A", []string{"a.go -> b.go (b)", "b.go -> a.go (A)"}},
	} {
		fset, refs := token.NewFileSet(), references{}
		one, err := parser.ParseFile(fset, "a.go", "package p; "+row.a, parser.SkipObjectResolution)
		require.NoError(t, err)
		two, err := parser.ParseFile(fset, "b.go", "package p; "+row.b, parser.SkipObjectResolution)
		require.NoError(t, err)
		refs.add(t, "p", nil, fset, []*ast.File{one, two})
		require.Equal(t, row.want, refs.upward(), name)
	}
}

// references are the names that a file uses of other files: from, to, name.
type references map[string]map[string]string

func (r references) add(t *testing.T, path string, imp types.Importer, fset *token.FileSet, files []*ast.File) {
	t.Helper()
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: imp}
	pkg, err := conf.Check(path, fset, files, &info)
	require.NoError(t, err)
	for _, file := range files {
		from := fset.Position(file.Pos()).Filename
		if r[from] == nil {
			r[from] = map[string]string{}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			used := info.Uses[id]
			if used == nil || used.Pkg() != pkg || used.Parent() != pkg.Scope() {
				return true
			}
			if to := fset.Position(used.Pos()).Filename; to != from {
				r[from][to] = used.Name()
			}
			return true
		})
	}
}

// upward removes one level of files after the other, and lists the references between the files that are left.
func (r references) upward() []string {
	left := maps.Clone(r)
	for {
		free := slices.DeleteFunc(slices.Collect(maps.Keys(left)), func(from string) bool {
			for to := range r[from] {
				if _, there := left[to]; there {
					return true
				}
			}
			return false
		})
		if len(free) == 0 {
			break
		}
		for _, f := range free {
			delete(left, f)
		}
	}
	var found []string
	for from := range left {
		for to, name := range r[from] {
			if _, there := left[to]; there {
				found = append(found, fmt.Sprintf("%s -> %s (%s)", from, to, name))
			}
		}
	}
	slices.Sort(found)
	return found
}

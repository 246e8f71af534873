package run

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryKindHasARow compares the constants of type Kind with the rows of the table, and checks that no row lacks a
// required field.
func TestEveryKindHasARow(t *testing.T) {
	require.ElementsMatch(t, slices.Collect(maps.Keys(declared[Kind](t, "Kind"))), slices.Collect(maps.Keys(kinds())))
	require.Len(t, kinds(), len(allKinds()), "two rows of one kind")
	for k, r := range kinds() {
		require.True(t, r.fold != nil && r.payload != nil, "%s has no fold or no payload", k)
		require.True(t, r.log != nil && r.headline != nil && r.story != nil, "%s lacks a text", k)
	}
}

// declared are the constants of a type of text in the package's source: their names, by their values.
func declared[T ~string](t *testing.T, typeName string) map[T]string {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	found := map[T]string{}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == typeName {
				for i, name := range spec.Names {
					value, err := strconv.Unquote(spec.Values[i].(*ast.BasicLit).Value)
					require.NoError(t, err)
					require.Empty(t, found[T(value)], "%s: two constants", value)
					found[T(value)] = name.Name
				}
			}
			return true
		})
	}
	require.NotEmpty(t, found)
	return found
}

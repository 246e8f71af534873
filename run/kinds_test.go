package run

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryKindHasARow compares the constants of type Kind with the rows of the table, and checks that no row lacks a
// required field.
func TestEveryKindHasARow(t *testing.T) {
	require.Empty(t, incomplete(declared[Kind](t, "Kind"), kinds))
	require.Len(t, kinds, len(allKinds()), "two rows of one kind")
}

func incomplete(names map[Kind]string, rows map[Kind]*kindRow) []string {
	var found []string
	for k, name := range names {
		if rows[k] == nil {
			found = append(found, name+" has no row")
		}
	}
	for k, r := range rows {
		if names[k] == "" {
			found = append(found, string(k)+" has no constant")
		}
		for field, lacks := range map[string]bool{
			"fold": r.fold == nil, "payload": r.payload == nil,
			"log": r.log == nil, "headline": r.headline == nil, "story": r.story == nil,
		} {
			if lacks {
				found = append(found, string(k)+" has no "+field)
			}
		}
	}
	return found
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

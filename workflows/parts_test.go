package workflows_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPartsKeepTheirFields: a field of a part of a loop is used by the methods of that part only, and of what embeds it.
func TestPartsKeepTheirFields(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	fset, structs, files := token.NewFileSet(), map[string]*ast.StructType{}, []*ast.File{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, 0)
		require.NoError(t, err)
		files = append(files, file)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				structs[spec.Name.Name], _ = spec.Type.(*ast.StructType)
			}
			return true
		})
	}
	parts := map[string]string{} // type by the name that others reach it with
	for _, holder := range []string{"execution", "loop"} {
		for _, f := range structs[holder].Fields.List {
			if of := typeName(f.Type); structs[of] != nil && len(f.Names) > 0 {
				parts[f.Names[0].Name] = of
			}
		}
	}
	require.Greater(t, len(parts), 12)
	for _, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			receiver := typeName(f.Recv.List[0].Type)
			ast.Inspect(f, func(n ast.Node) bool {
				field, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				at, ok := field.X.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if of := parts[at.Sel.Name]; of != "" && of != receiver && named(structs[of], field.Sel.Name) {
					t.Errorf("%s: %s.%s uses field %s of %s", fset.Position(field.Pos()), receiver, f.Name.Name, field.Sel.Name, of)
				}
				return true
			})
		}
	}
}

func typeName(e ast.Expr) string {
	if p, ok := e.(*ast.StarExpr); ok {
		e = p.X
	}
	id, _ := e.(*ast.Ident)
	if id == nil {
		return ""
	}
	return id.Name
}

// named reports whether a struct has a field with this name.
func named(s *ast.StructType, name string) bool {
	return slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
		return slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return id.Name == name })
	})
}

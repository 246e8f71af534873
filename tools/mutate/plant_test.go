package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlantedFaultsFitTheCode: a function that gets another name or text needs another row in planted.txt.
func TestPlantedFaultsFitTheCode(t *testing.T) {
	all, err := readPlanted("planted.txt")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 100)
	names := map[string]bool{}
	for _, f := range all {
		require.False(t, names[f.name], "two faults have the name %q", f.name)
		names[f.name] = true
		text, err := os.ReadFile(filepath.Join("../..", f.file))
		require.NoError(t, err, f.name)
		files := token.NewFileSet()
		syntax, err := parser.ParseFile(files, f.file, text, 0)
		require.NoError(t, err, f.name)
		found := 0
		for _, d := range syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && functionName(fn) == f.function {
				found++
				body := text[files.Position(fn.Pos()).Offset:files.Position(fn.End()).Offset]
				require.Equal(t, 1, strings.Count(string(body), f.old), "%s: %q in %s of %s", f.name, f.old, f.function, f.file)
			}
		}
		require.Equal(t, 1, found, "%s: functions %s in %s", f.name, f.function, f.file)
	}
}

// TestFoldersExist: a package that is renamed or removed needs other rows in targets.go, planted.txt and equivalent.txt.
func TestFoldersExist(t *testing.T) {
	all, err := readPlanted("planted.txt")
	require.NoError(t, err)
	of, _ := planted(all)
	for _, target := range append(of, passbook...) {
		for _, folder := range append(target.tests, target.folder) {
			require.DirExists(t, filepath.Join("../..", folder), target.folder)
		}
	}
	reasons, err := readEquivalent("equivalent.txt")
	require.NoError(t, err)
	for key := range reasons {
		folder, _, _ := strings.Cut(key, " | ")
		require.DirExists(t, filepath.Join("../..", folder), key)
	}
}

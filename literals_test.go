package passbook_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// categoryTable is the only file that spells the words of error categories.
const categoryTable = "run/category.go"

// otherMeanings are the files in which a category's word is a word of something else, by "file word".
var otherMeanings = map[string]string{
	"run/status.go unknown":                          "a status of runs",
	"run/status.go cancelled":                        "a status of runs",
	"run/liveness.go unknown":                        "the server was not asked",
	"run/fold_work.go ok":                            "an outcome of phases",
	"workflows/stages.go ok":                         "an outcome of phases",
	"activities/evaluate.go ok":                      "a command's value",
	"internal/adapter/frame.go ok":                   "a state of tool calls",
	"pipeline/check_run.go ok":                       "a command's value",
	"internal/calls/calls.go superseded":             "the name of a file in the store",
	"internal/cli/doctor.go ok":                      "a finding of doctor",
	"internal/doctor/doctor.go ok":                   "a finding of doctor",
	"internal/operations/schedule_list.go cancelled": "a run of a schedule",
	"internal/operations/schedule_list.go unknown":   "a run of a schedule",
	"internal/connect/connect.go unknown":            "a user without a name",
	"devserver/ready.go unknown":                     "a Web UI without a version",
}

func TestCategoriesAreSpelledInOneFile(t *testing.T) {
	found := spelled(t, categoryWords())
	delete(found, categoryTable)
	var wrong []string
	excused := map[string]bool{}
	for file, words := range found {
		for _, word := range words {
			if _, ok := otherMeanings[file+" "+word]; ok {
				excused[file+" "+word] = true
				continue
			}
			wrong = append(wrong, fmt.Sprintf("%s spells %q: use the constant of %s", file, word, categoryTable))
		}
	}
	require.Empty(t, wrong)
	for place := range otherMeanings {
		require.True(t, excused[place], "%s is not there: remove the exception", place)
	}
}

func categoryWords() []string {
	var words []string
	for _, row := range run.Categories() {
		words = append(words, string(row.Name))
	}
	return words
}

// spelled returns the string literals of the tree that are equal to one of the words, by file. Tests are left out.
func spelled(t *testing.T, words []string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for path, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			if word, ok := literal(n); ok && slices.Contains(words, word) {
				found[path] = append(found[path], word)
			}
			return true
		})
	}
	require.NotEmpty(t, found[categoryTable])
	return found
}

func literal(n ast.Node) (string, bool) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// sources are the parsed Go files of the tree, without tests.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return skipped(err)
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files[filepath.ToSlash(path)], err = parser.ParseFile(token.NewFileSet(), path, nil,
			parser.SkipObjectResolution)
		return err
	}))
	return files
}

func skipped(err error) error {
	if err != nil {
		return err
	}
	return fs.SkipDir
}

// wordFields are fields of types whose words are constants in one place.
var wordFields = []string{"Category", "Outcome", "Kind"}

// TestWordsAreComparedWithConstants: a field that holds one of a list of words is compared with a constant of the list.
func TestWordsAreComparedWithConstants(t *testing.T) {
	var wrong []string
	for path, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			for _, word := range comparedWords(n) {
				wrong = append(wrong, fmt.Sprintf("%s compares a field with %q: use its constant", path, word))
			}
			return true
		})
	}
	require.Empty(t, wrong)
}

// comparedWords are the literals, other than the empty string, that a comparison or a switch compares a field with.
func comparedWords(n ast.Node) []string {
	var with []ast.Expr
	switch n := n.(type) {
	case *ast.BinaryExpr:
		switch {
		case n.Op != token.EQL && n.Op != token.NEQ:
		case wordField(n.X):
			with = append(with, n.Y)
		case wordField(n.Y):
			with = append(with, n.X)
		}
	case *ast.SwitchStmt:
		if n.Tag == nil || !wordField(n.Tag) {
			return nil
		}
		for _, clause := range n.Body.List {
			with = append(with, clause.(*ast.CaseClause).List...)
		}
	}
	var words []string
	for _, x := range with {
		if word, ok := literal(x); ok && word != "" {
			words = append(words, word)
		}
	}
	return words
}

func wordField(x ast.Expr) bool {
	sel, ok := x.(*ast.SelectorExpr)
	return ok && slices.Contains(wordFields, sel.Sel.Name)
}

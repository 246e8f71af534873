package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// clean is a module that every gate passes.
var clean = map[string]string{
	"go.mod": "module clean\n\ngo 1.26\n",
	"clean.go": "// Package clean has no finding.\npackage clean\n\n// Sum adds.\nfunc Sum(a, b int) int { " +
		"return a + b }\n",
	"clean_test.go": "package clean\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(1, 2) != 3 " +
		"{\n\t\tt.Fail()\n\t}\n}\n",
}

// TestEveryGateTurnsRed plants one violation for each gate of scripts/lint, and a data race for the tests' detector, in
// a module of its own.
func TestEveryGateTurnsRed(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	lint := filepath.Join(root, "scripts", "lint")
	rows := []struct {
		gate    string
		command []string
		file    string
		planted string
		message string
	}{
		{"gofmt", []string{lint, "gofmt"}, "planted.go", "package clean\n\nvar  Planted = 1\n", "lint failed: gofmt"},
		{"vet", []string{lint, "vet"}, "planted.go",
			"package clean\n\nimport \"fmt\"\n\nfunc Planted() { fmt.Printf(\"%d\", \"text\") }\n",
			"wrong type string"},
		{"darwin", []string{lint, "darwin"}, "planted_darwin.go",
			"package clean\n\nvar Planted = missing\n", "undefined: missing"},
		{"staticcheck", []string{lint, "staticcheck"}, "planted.go", "package clean\n\nfunc planted() {}\n",
			"func planted is unused"},
		{"errcheck, a dropped close", []string{lint, "errcheck"}, "planted.go",
			"package clean\n\nimport \"os\"\n\nfunc Planted(f *os.File) {\n\tdefer f.Close()\n}\n", "defer f.Close()"},
		{"errcheck, a blank write", []string{lint, "errcheck"}, "planted.go",
			"package clean\n\nimport \"os\"\n\nfunc Planted(f *os.File) {\n\t_, _ = f.WriteString(\"\")\n}\n",
			"f.WriteString"},
		{"tidy", []string{lint, "tidy"}, "go.mod", "module clean\n\ngo 1.26\n\nrequire github.com/google/uuid v1.6.0\n",
			"-require github.com/google/uuid"},
		{"vale, a page", []string{lint, "vale"}, "docs/planted.md", "# Page\n\nThe run goes\non.\n",
			"docs/planted.md:3:9: Use 'continue' instead of 'goes on'"},
		{"vale, a cell", []string{lint, "vale"}, "docs/planted.md",
			"| a |\n|---|\n| 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 |\n",
			"docs/planted.md:3:3: A cell has at most 15 words"},
		{"vale, a message", []string{lint, "vale"}, "planted.go",
			"package clean\n\n// Planted is a message.\nconst Planted = \"nobody answers\"\n",
			"planted.go:4:18: Use 'no worker'"},
		{"vale, a comment", []string{lint, "vale"}, "planted.go",
			"package clean\n\n// Planted rests.\nconst Planted = 1\n", "planted.go:3:12: Use 'pause'"},
		{"actionlint", []string{lint, "actionlint"}, ".github/workflows/planted.yml",
			"on: push\njobs:\n  x:\n    runs-on: ubuntu-24.04\n    steps:\n      - run: echo ${{ github.nothing }}\n",
			"property \"nothing\" is not defined"},
		{"race", []string{"go", "test", "-race", "./..."}, "planted_test.go",
			"package clean\n\nimport \"testing\"\n\nfunc TestPlanted(t *testing.T) {\n\tn, done := 0, make(chan " +
				"bool)\n\tgo func() { n++; close(done) }()\n\tn++\n\t<-done\n}\n", "DATA RACE"},
	}
	for _, row := range rows {
		t.Run(row.gate, func(t *testing.T) {
			if cgo, err := gated(t, root, []string{"go", "env", "CGO_ENABLED"}); row.gate == "race" &&
				(err != nil || cgo != "1\n") {
				t.Skip("the race detector needs a C compiler")
			}
			dir := t.TempDir()
			for name, text := range clean {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			output, err := gated(t, dir, row.command)
			require.NoError(t, err, "before anything is planted: %s", output)
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, row.file)), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, row.file), []byte(row.planted), 0o600))
			output, err = gated(t, dir, row.command)
			require.Error(t, err, output)
			require.Contains(t, output, row.message)
		})
	}
}

// gated runs a gate over a folder.
func gated(t *testing.T, dir string, command []string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LINT_DIR="+dir, "LINT_MODULES=.", "GOFLAGS=-buildvcs=false")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

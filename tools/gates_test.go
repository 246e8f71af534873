package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// violations are one finding for each gate of scripts/lint, in one module: the gate, its file and its message.
var violations = []struct{ gate, file, text, message string }{
	{"golangci", "format.go", "package clean\n\nvar  Format = 1\n", "File is not properly formatted (gofmt)"},
	{"golangci", "print.go", "package clean\n\nimport \"fmt\"\n\nfunc Print() { fmt.Printf(\"%d\", \"text\") }\n",
		"wrong type string"},
	{"darwin", "mac_darwin.go", "package clean\n\nvar Mac = missing\n", "undefined: missing"},
	{"golangci", "unused.go", "package clean\n\nfunc unused() {}\n", "func unused is unused"},
	{"golangci", "drop.go", "package clean\n\nimport \"os\"\n\nfunc Drop(f *os.File) {\n\tdefer f.Close()\n" +
		"\t_, _ = f.WriteString(\"\")\n}\n", "f.WriteString"},
	{"golangci", "drop.go", "", "defer f.Close()"},
	{"vale", "docs/page.md", "# Page\n\nThe run g" + "oes\non.\n", "docs/page.md:3:9:Passbook.Words:Use 'continue'"},
	{"vale", "docs/cell.md", "| a |\n|---|\n| 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 |\n",
		"docs/cell.md:3:3:Passbook.Cells:A cell has at most 15 words"},
	{"vale", "message.go", "package clean\n\n// Message r" + "ests.\nconst Message = \"n" +
		"obody answers\"\n",
		"message.go:3:12:Passbook.Words:Use "},
	{"vale", "message.go", "", "message.go:4:18:Passbook.Words:Use 'no worker'"},
	{"actionlint", ".github/workflows/x.yml", "on: push\njobs:\n  x:\n    runs-on: ubuntu-24.04\n    steps:\n" +
		"      - run: echo ${{ github.nothing }}\n", "property \"nothing\" is not defined"},
	{"tidy", "go.mod", "module clean\n\ngo 1.26\n\nrequire github.com/google/uuid v1.6.0\n",
		"-require github.com/google/uuid"},
}

func TestGatesReportViolations(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("go.mod", "module clean\n\ngo 1.26\n")
	write("clean.go", "// Package clean has no finding.\npackage clean\n\n// Sum adds.\nfunc Sum(a, b int) int { "+
		"return a + b }\n")
	gates := []string{"golangci", "darwin", "vale", "actionlint"}
	output, err := lint(t, dir, append(gates, "tidy")...)
	require.NoError(t, err, "a clean module: %s", output)
	for _, v := range violations {
		if v.text != "" && v.gate != "tidy" {
			write(v.file, v.text)
		}
	}
	output, err = lint(t, dir, gates...)
	require.Error(t, err)
	write("go.mod", violations[len(violations)-1].text) // the other gates need a tidy module
	tidy, err := lint(t, dir, "tidy")
	require.Error(t, err)
	for _, v := range violations {
		require.Contains(t, output+tidy, v.message, v.gate)
	}
}

// lint runs gates of scripts/lint over a folder.
func lint(t *testing.T, dir string, gates ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../scripts/lint", gates...)
	cmd.Env = append(os.Environ(), "LINT_DIR="+dir, "LINT_MODULES=.", "GOFLAGS=-buildvcs=false")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// nondeterministic is one workflow function for each violation.
const nondeterministic = `package workflows

import (
	"math/rand"
	"os"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"
)

func PlantedEnvironment(workflow.Context) string      { return os.Getenv("HOME") }
func PlantedFile(workflow.Context) ([]byte, error)    { return os.ReadFile("/etc/hostname") }
func PlantedID(workflow.Context) string               { return uuid.New().String() }
func PlantedClock(workflow.Context) time.Time         { return time.Now() }
func PlantedChance(workflow.Context) int              { return rand.Int() }
func PlantedGoroutine(workflow.Context)               { go func() {}() }
func PlantedOrder(_ workflow.Context, m map[int]int) (last int) {
	for k := range m {
		last = k
	}
	return last
}
`

// TestWorkflowcheckFindsNondeterminism uses the configuration of scripts/lint in a module with the same dependencies.
func TestWorkflowcheckFindsNondeterminism(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "workflows"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "workflows", "planted.go"), []byte(nondeterministic), 0o600))
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	here, err := os.Getwd()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+filepath.Join(here, "go.mod"), "workflowcheck",
		"-config", filepath.Join(here, "workflowcheck.yaml"), "./workflows")
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	require.Error(t, err)
	for name, reason := range map[string]string{
		"Environment": "calls non-deterministic function os.Getenv",
		"File":        "calls non-deterministic function os.ReadFile",
		"ID":          "calls non-deterministic function github.com/google/uuid.New",
		"Clock":       "calls non-deterministic function time.Now",
		"Chance":      "calls non-deterministic function math/rand.Int",
		"Goroutine":   "starts goroutine",
		"Order":       "iterates over map",
	} {
		require.Contains(t, strings.TrimSpace(string(output)), "Planted"+name+" is non-deterministic, reason: "+reason)
	}
}

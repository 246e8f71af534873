package tools

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// planted is one workflow function for each thing that a workflow may not do, named after what the checker must say.
const planted = `package workflows

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

func TestWorkflowcheckFindsNondeterminism(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := checkout(t, root)
	output, ok := workflowcheck(t, root, dir)
	require.True(t, ok, "before anything is planted: %s", output)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "workflows", "planted.go"), []byte(planted), 0o600))
	output, ok = workflowcheck(t, root, dir)
	require.False(t, ok)
	for _, want := range []string{
		"PlantedEnvironment is non-deterministic, reason: calls non-deterministic function os.Getenv",
		"PlantedFile is non-deterministic, reason: calls non-deterministic function os.ReadFile",
		"PlantedID is non-deterministic, reason: calls non-deterministic function github.com/google/uuid.New",
		"PlantedClock is non-deterministic, reason: calls non-deterministic function time.Now",
		"PlantedChance is non-deterministic, reason: calls non-deterministic function math/rand.Int",
		"PlantedGoroutine is non-deterministic, reason: starts goroutine",
		"PlantedOrder is non-deterministic, reason: iterates over map",
	} {
		require.Contains(t, output, want)
	}
}

// checkout copies the workflows and what they import from this module to a folder of their own.
func checkout(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.Dir}}", "./workflows")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	copied := 0
	for _, pkg := range strings.Fields(string(out)) {
		if name, err := filepath.Rel(root, pkg); err == nil && filepath.IsLocal(name) {
			copyFiles(t, pkg, filepath.Join(dir, name), "*.go")
			copied++
		}
	}
	require.Greater(t, copied, 3, "workflows, run, pipeline, work")
	copyFiles(t, root, dir, "go.*")
	return dir
}

func copyFiles(t *testing.T, from, to, pattern string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(from, pattern))
	require.NoError(t, err)
	require.NotEmpty(t, files, from)
	require.NoError(t, os.MkdirAll(to, 0o700))
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(to, filepath.Base(file)), data, 0o600))
	}
}

// workflowcheck runs the gate of scripts/lint over a checkout.
func workflowcheck(t *testing.T, root, dir string) (output string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+filepath.Join(root, "tools", "go.mod"),
		"workflowcheck", "-config", filepath.Join(root, "tools", "workflowcheck.yaml"), "./workflows")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.True(t, errors.As(err, new(*exec.ExitError)), err)
	}
	return string(out), err == nil
}

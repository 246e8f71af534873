package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// turnsPipeline is the turn loop of the examples.
func turnsPipeline() string { return filepath.Join(project, "examples", "turns", "pipeline.yaml") }

// lastChanged is the turn that last changed each file of the example, and how, copied from
// examples/turns/project/PLAN.md by hand.
var lastChanged = map[string]string{
	"PLAN.md":            "8 removed",
	"README.md":          "7 changed",
	"bin/ledger":         "8 changed",
	"data/expenses.csv":  "4 renamed",
	"draft.txt":          "6 removed",
	"expenses.csv":       "4 renamed",
	"lib/categories.awk": "6 removed",
	"lib/report.awk":     "6 added",
	"tally.sh":           "4 renamed",
}

// TestTurns runs the example of turns: its gates, an agent that edits a protected test, verify, and a rebuild.
func TestTurns(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir := h.dir("demo")
	output := h.starter("run", "--config", turnsPipeline(), "--output-dir", dir)
	require.Contains(t, output, "Done: 1 stage, 8 rounds, verdict done, 17 calls")
	h.oncePerAnswer(8, 0)
	var tests []string
	for _, p := range of[run.PassEnd](eventsOf(t, dir), run.KindPassEnd) {
		if p.ID == "tests" {
			tests = append(tests, p.Value)
		}
	}
	require.Equal(t, strings.Fields("failed failed failed failed failed failed failed ok ok"), tests, "the last one in a fresh folder")
	tampered := of[run.Tampered](eventsOf(t, dir), run.KindWorkspaceTampered)
	require.Len(t, tampered, 1, "the worker edits the test that judges it")
	require.Equal(t, "test.sh (changed)", tampered[0].Text())
	require.Equal(t, read(t, filepath.Join(project, "examples", "turns", "project", "test.sh")),
		read(t, filepath.Join(dir, rundir.WorkspaceDir, "test.sh")))

	verifyTurns(t, h, dir)

	whole, id := tree(t, dir), metaOf(t, dir).RunID
	for n := 1; n <= 8; n++ {
		require.Contains(t, whole, rundir.SnapshotManifest(n))
	}
	require.NoError(t, os.RemoveAll(dir))
	h.starter("rebuild", id, "--output-dir", dir)
	rebuilt := tree(t, dir)
	for name := range whole {
		if strings.HasPrefix(name, rundir.WorkspaceDir+"/") {
			delete(whole, name) // the next call links it
		}
	}
	sameTree(t, whole, rebuilt)
}

// verifyTurns runs the gate of the finished run again. A gate that fails changes nothing, either.
func verifyTurns(t *testing.T, h *environment, dir string) {
	t.Helper()
	before := tree(t, dir)
	require.Regexp(t, `sh test.sh +0 +[0-9.]+s +ok +ok\n`, h.starter("verify", dir))
	sameTree(t, before, tree(t, dir))
	plan := filepath.Join(dir, rundir.PlanFile)
	raw := read(t, plan)
	failing := strings.Replace(string(raw), `"sh test.sh"`, `"rm PLAN.md README.md; echo broken; exit 7"`, 1)
	require.NotEqual(t, string(raw), failing)
	require.NoError(t, os.WriteFile(plan, []byte(failing), 0o600))
	output, code := h.try("verify", dir)
	require.Equal(t, 3, code)
	require.Regexp(t, `exit 7 +7 +[0-9.]+s +ok +failed, differs\n`, output)
	require.Contains(t, output, "  broken\n")
	require.NoError(t, os.WriteFile(plan, raw, 0o600))
	require.Equal(t, before, tree(t, dir))
}

// smallTurns is the turn loop of the walk.
func smallTurns() string {
	return filepath.Join(project, "test", "e2e", "testdata", "turns", "pipeline.yaml")
}

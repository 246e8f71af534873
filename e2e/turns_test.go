package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// turnsPipeline is the turn loop of the examples.
func turnsPipeline() string { return filepath.Join(project, "examples", "turns", "pipeline.yaml") }

// lastChanged is which turn last changed each file of the example, and how; read off examples/turns/project/PLAN.md by hand.
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
	"test.sh":            "7 changed",
}

// TestTurns runs the demo of the turns with the program that people have, and looks at what the turns have left.
func TestTurns(t *testing.T) {
	h := newHouse(t)
	dir := h.dir("demo")
	said := h.starter("demo", "turns", "--output-dir", dir)
	require.Contains(t, said, "Done: 0 of 0 passes, 8 rounds, 16 calls")
	require.Contains(t, said, "8     worker  g0.turns/1.8.-.1  deleted  PLAN.md")
	h.oncePerAnswer(8, 0)
	var tests []string
	for _, p := range of[run.PassEnd](eventsOf(t, dir), run.KindPassEnd) {
		if p.As == "tests" {
			tests = append(tests, p.Value)
		}
	}
	require.Equal(t, strings.Fields("ok failed ok ok ok ok failed ok"), tests)

	var blamed struct {
		Files []struct {
			Path string `json:"path"`
			What string `json:"what"`
			Turn int    `json:"turn"`
			Role string `json:"role"`
		} `json:"files"`
	}
	require.NoError(t, json.Unmarshal([]byte(h.starter("blame", "--json", dir)), &blamed))
	got := map[string]string{}
	for _, f := range blamed.Files {
		require.Equal(t, "worker", f.Role)
		got[f.Path] = fmt.Sprintf("%d %s", f.Turn, f.What)
	}
	require.Equal(t, lastChanged, got)

	out := h.dir("third")
	h.starter("snapshot", "checkout", dir, "3", out)
	program, err := exec.CommandContext(t.Context(), "sh", filepath.Join(out, "tally.sh"), filepath.Join(out, "expenses.csv")).Output()
	require.NoError(t, err)
	require.Equal(t, "50.70\n", string(program))
	require.NoFileExists(t, filepath.Join(out, "bin", "ledger"))

	whole, id := tree(t, dir), metaOf(t, dir).RunID
	for n := 1; n <= 8; n++ {
		require.Contains(t, whole, rundir.SnapshotManifest(n))
	}
	h.starter("snapshot", "checkout", dir, "8", h.dir("last"))
	require.NoError(t, differences(tree(t, h.dir("last")), tree(t, filepath.Join(dir, rundir.WorkspaceDir))))
	require.NoError(t, os.RemoveAll(dir))
	h.starter("rebuild", id, "--output-dir", dir)
	rebuilt := tree(t, dir)
	for name := range whole {
		if strings.HasPrefix(name, rundir.WorkspaceDir+"/") {
			delete(whole, name) // no record: a pass makes it again
		}
	}
	sameTree(t, whole, rebuilt)
}

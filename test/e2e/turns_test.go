package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/e2e/point"
)

// turnsPipeline is the turn loop of the examples.
func turnsPipeline() string { return filepath.Join(project, "examples", "turns", "pipeline.yaml") }

// lastChanged is which turn last changed each file of the example, and how; read off examples/turns/project/PLAN.md by
// hand.
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

// TestTurns runs the demo of the turns with the program that people have, and looks at what the turns have left.
func TestTurns(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir := h.dir("demo")
	output := h.starter("demo", "turns", "--output-dir", dir)
	require.Contains(t, output, "Done: 1 stage, 8 rounds, verdict done, 16 calls")
	require.Contains(t, output, "8      worker  g0.turns/1.8.-.1  deleted  PLAN.md")
	h.oncePerAnswer(8, 0)
	var tests []string
	for _, p := range of[run.PassEnd](eventsOf(t, dir), run.KindPassEnd) {
		if p.As == "tests" {
			tests = append(tests, p.Value)
		}
	}
	require.Equal(t, strings.Fields("failed failed failed failed failed failed failed ok"), tests)
	tampered := of[run.Tampered](eventsOf(t, dir), run.KindWorkspaceTampered)
	require.Len(t, tampered, 1, "the worker edits the test that judges it")
	require.Equal(t, "test.sh (changed)", tampered[0].Text())
	judge, err := os.ReadFile(filepath.Join(project, "examples", "turns", "project", "test.sh"))
	require.NoError(t, err)
	left, err := os.ReadFile(filepath.Join(dir, layout.WorkspaceDir, "test.sh"))
	require.NoError(t, err)
	require.Equal(t, string(judge), string(left))

	verifyTurns(t, h, dir)

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
		if f.Turn == 0 {
			require.Equal(t, "test.sh", f.Path, "it is as it was at the start")
			continue
		}
		require.Equal(t, "worker", f.Role)
		got[f.Path] = fmt.Sprintf("%d %s", f.Turn, f.What)
	}
	require.Equal(t, lastChanged, got)

	out := h.dir("third")
	h.starter("snapshot", "checkout", dir, "3", out)
	program, err := exec.CommandContext(t.Context(), "sh", filepath.Join(out, "tally.sh"),
		filepath.Join(out, "expenses.csv")).Output()
	require.NoError(t, err)
	require.Equal(t, "50.70\n", string(program))
	require.NoFileExists(t, filepath.Join(out, "bin", "ledger"))

	whole, id := tree(t, dir), metaOf(t, dir).RunID
	for n := 1; n <= 8; n++ {
		require.Contains(t, whole, layout.SnapshotManifest(n))
	}
	h.starter("snapshot", "checkout", dir, "8", h.dir("last"))
	require.NoError(t, differences(tree(t, h.dir("last")), tree(t, filepath.Join(dir, layout.WorkspaceDir))))
	require.NoError(t, os.RemoveAll(dir))
	h.starter("rebuild", id, "--output-dir", dir)
	rebuilt := tree(t, dir)
	for name := range whole {
		if strings.HasPrefix(name, layout.WorkspaceDir+"/") || name == layout.CheckoutFile {
			delete(whole, name) // no record: a pass makes it again
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
	plan := filepath.Join(dir, layout.PlanFile)
	raw, err := os.ReadFile(plan)
	require.NoError(t, err)
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

// smallChanged is which turn last changed each file of it.
var smallChanged = map[string]string{
	"draft.txt": "2 removed", "in/two.txt": "2 renamed", "in/test.sh": "2 added", "note.txt": "2 changed",
	"one.txt": "2 renamed",
}

// TestWalkTurns kills the worker at points of a run that works on a tree, each in a run of its own, and lets an honest
// one take over.
func TestWalkTurns(t *testing.T) {
	t.Parallel()
	g := newGrounds(t, smallTurns())
	require.Equal(t, smallChanged, lastChanges(g.want.Changes))
	require.Contains(t, g.want.Files, "snapshots/turn-2/tree/in/two.txt")
	g.walk(t, g.count(t, "count", g.oneWorker(t)),
		func(ctx context.Context, s *site, p point.Plan) (*point.Point, error) {
			if err := s.start(ctx); err != nil {
				return nil, err
			}
			return s.killWorker(ctx, p)
		})
}

// TestEveryInvariantOfTurnsCanFail hurts copies of a run that died once and came to its end.
func TestEveryInvariantOfTurnsCanFail(t *testing.T) {
	t.Parallel()
	g := newGrounds(t, smallTurns())
	s, err := g.newSite("whole")
	require.NoError(t, err)
	require.NoError(t, s.start(t.Context()))
	at, err := s.killWorker(t.Context(), point.Plan{DieAt: g.first(t, "checkpoints/turn-N/manifest.json")})
	require.NoError(t, err)
	require.NotNil(t, at)
	require.Contains(t, s.deaths[0].Left.Files, layout.SnapshotManifest(1))
	require.NoError(t, s.finish(t.Context()))
	require.NoError(t, s.watch.over())
	stranger := bystander(t)
	for _, injury := range []injury{
		{5, "an old snapshot is written again", func(c *site) {
			c.edit(t, layout.SnapshotManifest(1), func(raw string) string {
				return strings.Replace(raw, "kept.txt",
					"lost.txt", 1)
			})
		}},
		{7, "the last snapshot is another", func(c *site) {
			c.edit(t, layout.SnapshotManifest(2), func(raw string) string {
				return strings.Replace(raw, "kept.txt",
					"lost.txt", 1)
			})
		}},
		{7, "a file of a tree that was laid down is another", func(c *site) {
			c.edit(t, "snapshots/turn-1/tree/kept.txt", func(string) string { return "changed" })
		}},
		{7, "the run's own checkout is another", func(c *site) {
			c.edit(t, "workspace/kept.txt", func(string) string { return "changed" })
		}},
		{8, "somebody is at work in the scratch folder", func(c *site) {
			cmd := exec.Command("sleep", "600")
			cmd.Dir = filepath.Join(c.root, "run")
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { require.NoError(t, end(cmd)) })
		}},
		{9, "a deletion has no row", func(c *site) {
			c.edit(t, layout.ProvenanceFile, func(raw string) string { return without(raw, `"path":"draft.txt"`) })
		}},
		{9, "a row names another call", func(c *site) {
			c.edit(t, layout.ProvenanceFile, func(raw string) string {
				return strings.Replace(raw, "g0.turns/1.2.-.1",
					"g0.turns/1.1.-.1", 1)
			})
		}},
	} {
		t.Run(injury.name, func(t *testing.T) {
			c := s.copied(t)
			require.NoError(t, c.invariants(g.want, stranger))
			c = s.copied(t)
			injury.hurt(c)
			require.Contains(t, broken(c.invariants(g.want, stranger)), injury.invariant)
		})
	}
}

// without leaves out the lines with a text.
func without(raw, text string) string {
	var out strings.Builder
	for line := range strings.Lines(raw) {
		if !strings.Contains(line, text) {
			out.WriteString(line)
		}
	}
	return out.String()
}

package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/e2e/point"
)

// TestHarnessDetectsRepeatedCalls shows that the harness detects a repeated payment: a worker that never finds an
// earlier answer takes over where one died between an answer and its journaling, and invariant 4 does not hold.
func TestHarnessDetectsRepeatedCalls(t *testing.T) {
	t.Parallel()
	g := newGrounds(t, small())
	s, err := g.newSite("forgetful")
	require.NoError(t, err)
	at, err := workerDies(t.Context(), s, point.Plan{DieAt: g.first(t, string(activities.PointStored))})
	require.NoError(t, err)
	require.NotNil(t, at)
	require.Equal(t, string(activities.PointStored), at.At)
	at, err = s.killWorker(t.Context(), point.Plan{Forget: true})
	require.NoError(t, err)
	require.Nil(t, at, "it was not to die")
	err = s.invariants(g.want)
	require.Equal(t, []int{4}, broken(err))
	require.ErrorContains(t, err, "call 001 was answered 2 times, started 2 times")
}

// first returns the number of the first point of a run whose place contains the text.
func (g *grounds) first(t *testing.T, text string) int {
	t.Helper()
	for _, p := range g.count(t, workerDies) {
		if strings.Contains(placeOf(p, g.root), text) {
			return p.N
		}
	}
	require.FailNow(t, "no run reaches the point", text)
	return 0
}

// TestWalkDetectsDamage damages copies of runs that were killed once and completed, and expects the invariant that
// fails. It runs in the exhaustive form only.
func TestWalkDetectsDamage(t *testing.T) {
	if !*walkAll {
		t.Skip("part of make test-all")
	}
	t.Parallel()
	stranger := bystander(t)
	for name, row := range map[string]struct {
		file, dieAt string // a checkpoint has been committed by then
		damage      []damaged
	}{
		"page":  {small(), "refine-output", damagedPages(t, stranger)},
		"turns": {smallTurns(), "checkpoints/turn-N/manifest.json", damagedTrees(t)},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t, row.file)
			s, err := g.newSite("whole")
			require.NoError(t, err)
			at, err := workerDies(t.Context(), s, point.Plan{DieAt: g.first(t, row.dieAt)})
			require.NoError(t, err)
			require.NotNil(t, at)
			require.NoError(t, s.finish(t.Context()))
			require.NoError(t, s.invariants(g.want, stranger))
			for _, d := range row.damage {
				t.Run(d.name, func(t *testing.T) {
					c := s.copied(t)
					d.damage(c)
					require.Contains(t, broken(c.invariants(g.want, stranger)), d.invariant)
				})
			}
			gone := stranger
			gone.StartTime += "0"
			require.Equal(t, []int{8}, broken(s.copied(t).invariants(g.want, gone)))
			testGoingBack(t, s)
		})
	}
}

// damaged is a way to damage a completed run.
type damaged struct {
	invariant int
	name      string
	damage    func(c *site)
}

// rewritten changes a file of the run.
func rewritten(t *testing.T, name string, change func(string) string) func(*site) {
	return func(c *site) {
		path := filepath.Join(c.dir, name)
		raw := string(read(t, path))
		require.NotEqual(t, raw, change(raw))
		require.NoError(t, os.WriteFile(path, []byte(change(raw)), 0o600))
	}
}

// texts replaces a text.
func texts(old, text string) func(string) string {
	return func(raw string) string { return strings.Replace(raw, old, text, 1) }
}

// firstLine returns the length of the first line.
func firstLine(raw string) int { return strings.Index(raw, "\n") + 1 }

// called adds a line to the call log.
func called(t *testing.T, l callLine) func(*site) {
	return func(c *site) {
		line, err := json.Marshal(l)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(c.log, append(read(t, c.log), append(line, '\n')...), 0o600))
	}
}

func damagedPages(t *testing.T, stranger process.Identity) []damaged {
	dir, err := os.Getwd()
	require.NoError(t, err)
	return []damaged{
		{2, "half a row", rewritten(t, rundir.TracesFile, func(raw string) string { return raw + `{"half` })},
		{3, "missing line", rewritten(t, rundir.EventsFile, func(raw string) string { return raw[firstLine(raw):] })},
		{3, "changed line", rewritten(t, rundir.EventsFile, texts("kill-points", "kill-paints"))},
		{4, "settled call started again", called(t, callLine{Event: "start", At: "001"})},
		{4, "call answered twice", called(t, callLine{Event: "answered", At: "weaver-1"})},
		{5, "changed checkpoint", rewritten(t, "_orchestrator/checkpoints/cp-S1/manifest.json", texts("cp-S1", "cp-S2"))},
		{6, "duplicated cost row", rewritten(t, rundir.CostLog,
			func(raw string) string { return raw + raw[:firstLine(raw)] })},
		{6, "call missing at the gate of the host", func(c *site) {
			require.NoError(t, os.Remove(filepath.Join(c.op.Settings.StateDir, "gate.db")))
		}},
		{7, "shortened notes", rewritten(t, "_orchestrator/discovery-log.md",
			func(raw string) string { return raw[:len(raw)/2] })},
		{8, "surviving agent", called(t, callLine{Event: "start", At: "001", PID: stranger.PID, Dir: dir})},
		{9, "last change without a row", rewritten(t, rundir.ProvenanceFile,
			func(raw string) string { return raw[:firstLine(raw)] })},
		{10, "second end", rewritten(t, rundir.EventsFile, func(raw string) string {
			last, n := raw[strings.LastIndex(raw[:len(raw)-1], "\n")+1:], strings.Count(raw, "\n")
			return raw + texts(fmt.Sprintf(`"seq":%d,`, n), fmt.Sprintf(`"seq":%d,`, n+1))(last)
		})},
	}
}

func damagedTrees(t *testing.T) []damaged {
	return []damaged{
		{5, "changed snapshot", rewritten(t, rundir.SnapshotManifest(1), texts("kept.txt", "lost.txt"))},
		{7, "another last snapshot", rewritten(t, rundir.SnapshotManifest(2), texts("kept.txt", "lost.txt"))},
		{7, "changed file of a snapshot", rewritten(t, "snapshots/turn-1/tree/kept.txt", texts("", "changed"))},
		{7, "changed file of the checkout", rewritten(t, "workspace/kept.txt", texts("", "changed"))},
		{8, "process in the run directory", func(c *site) {
			cmd := exec.Command("sleep", "600")
			cmd.Dir = filepath.Join(c.root, "run")
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { require.NoError(t, end(cmd)) })
		}},
		{9, "deletion without a row", rewritten(t, rundir.ProvenanceFile, func(raw string) string {
			return strings.Join(slices.DeleteFunc(slices.Collect(strings.Lines(raw)), func(line string) bool {
				return strings.Contains(line, `"path":"draft.txt"`)
			}), "")
		})},
		{9, "row of another call", rewritten(t, rundir.ProvenanceFile, texts("g0.turns/1.2.-.1", "g0.turns/1.1.-.1"))},
	}
}

// testGoingBack shows a watch a finished state, an earlier one, and half a file (1).
func testGoingBack(t *testing.T, s *site) {
	c := s.copied(t)
	require.NoError(t, c.watch.over())
	w := &watch{dir: rundir.At(c.dir), seen: map[string]time.Time{}}
	require.NoError(t, w.look())
	rewritten(t, rundir.MetaFile, texts(fmt.Sprintf(`"seq": %d`, w.turn.Meta), fmt.Sprintf(`"seq": %d`, w.turn.Meta-1)))(c)
	require.ErrorContains(t, w.look(), "the run goes back")
	rewritten(t, rundir.MetaFile, func(raw string) string { return raw[:len(raw)/2] })(c)
	require.ErrorIs(t, w.look(), disk.ErrDamaged)
	require.NoError(t, os.Remove(filepath.Join(c.dir, rundir.StateFile)))
	require.Error(t, w.look())
}

// copied is the site with a copy of its run and its call log.
func (s *site) copied(t *testing.T) *site {
	t.Helper()
	c := *s
	c.root = t.TempDir()
	c.dir, c.log = filepath.Join(c.root, "run"), filepath.Join(c.root, "calls.jsonl")
	require.NoError(t, os.CopyFS(c.dir, os.DirFS(s.dir)))
	require.NoError(t, os.WriteFile(c.log, read(t, s.log), 0o600))
	c.op.Settings.StateDir = filepath.Join(c.root, "state")
	const ledger = "costs"
	require.NoError(t, os.CopyFS(filepath.Join(c.op.Settings.StateDir, ledger),
		os.DirFS(filepath.Join(s.op.Settings.StateDir, ledger))))
	c.watch = watchDirectory(rundir.At(c.dir))
	return &c
}

// broken lists the invariants that do not hold.
func broken(err error) []int {
	var one violation
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []int
		for _, e := range many.Unwrap() {
			out = append(out, broken(e)...)
		}
		return out
	}
	if errors.As(err, &one) {
		return []int{one.Invariant}
	}
	return nil
}

package e2e_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/e2e/point"
)

// TestTraps are what others have got wrong who keep turns: each is a run of its own.
func TestTraps(t *testing.T) {
	t.Parallel()
	g := newGrounds(t, smallTurns())
	answered := g.first(t, string(activities.PointStored))
	for name, try := range map[string]func(*testing.T, *grounds){
		"a turn is done again on a clean tree":     testCleanRedo,
		"an earlier snapshot is not written again": testSnapshotsStay,
		"what was finished before a crash is not an empty turn": func(t *testing.T, g *grounds) {
			testFinishedBefore(t,
				g, answered)
		},
		"a turn that changes nothing is a turn":                testNothingChanged,
		"rows have ids, relative paths, and know of deletions": testRows,
		"a torn file does not stop a run":                      testTornFiles,
		"a resume does not give new turns":                     testNoFreshTurns,
		"a store that is gone takes no turn with it":           testStoreGone,
	} {
		t.Run(name, func(t *testing.T) { try(t, g) })
	}
}

// cutInTurn2 is a run whose machine stopped, supervisors of calls and all, when the second turn had done half of its
// edits.
func (g *grounds) cutInTurn2(t *testing.T, name string) *site {
	t.Helper()
	s, err := g.newSite(name)
	require.NoError(t, err)
	require.NoError(t, s.spoil(slow("worker-2", "600")))
	require.NoError(t, s.start(t.Context()))
	cmd, err := s.worker(t.Context(), programs, false)
	require.NoError(t, err)
	until(t, "half of turn 2 is done", func() bool { return len(s.below("scratch", "two.txt")) > 0 })
	require.NoError(t, s.strike(killed, cmd, nil))
	require.NoError(t, endSupervisors(filepath.Join(s.root, "state", "scratch")))
	require.Equal(t, callOut, s.deaths[0].Window)
	return s
}

// below finds the files of a name in a folder of the state directory.
func (s *site) below(folder, name string) (found []string) {
	_ = filepath.WalkDir(filepath.Join(s.root, "state", folder), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == name { // a folder may go meanwhile
			found = append(found, path)
		}
		return nil
	})
	return found
}

func testCleanRedo(t *testing.T, g *grounds) {
	s := g.cutInTurn2(t, "clean")
	require.NoError(t, s.finish(t.Context()))
	require.NoError(t, s.invariants(g.want))
	left, err := look(s.dir, s.log)
	require.NoError(t, err)
	starts, _ := counts(left.Calls)
	require.Equal(t, map[string]int{"worker-1": 1, "worker-2": 2}, starts)
	for _, p := range of[run.PassAttempt](left.Events, run.KindPassAttempt) {
		if p.Late > 0 { // the delivery without an answer, whose cost is unknown
			require.Equal(t, run.CategorySuperseded, p.Category)
			continue
		}
		require.Equal(t, run.CategoryLost, p.Category, "the agent says when its folder is not clean: %s", p.Message)
	}
}

func testSnapshotsStay(t *testing.T, g *grounds) {
	s := g.cutInTurn2(t, "stay")
	name := filepath.Join(s.dir, layout.SnapshotManifest(1))
	before, err := os.Stat(name)
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(s.dir, layout.SnapshotManifest(2)), "half a turn is none")
	require.NoError(t, s.finish(t.Context()))
	after, err := os.Stat(name)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "it is another file now")
	require.Equal(t, before.ModTime(), after.ModTime())
	require.NoError(t, s.invariants(g.want))
}

func testFinishedBefore(t *testing.T, g *grounds, answered int) {
	s, err := g.newSite("finished")
	require.NoError(t, err)
	require.NoError(t, s.start(t.Context()))
	at, err := s.killWorker(t.Context(), point.Plan{DieAt: answered})
	require.NoError(t, err)
	require.NotNil(t, at)
	require.Equal(t, notJournaled, s.deaths[0].Window)
	require.NoError(t, s.finish(t.Context()))
	require.NoError(t, s.invariants(g.want))
	left, err := look(s.dir, s.log)
	require.NoError(t, err)
	first := of[run.PassEnd](left.Events, run.KindPassEnd)[0]
	require.Equal(t, run.CategoryOK, first.Outcome)
	require.True(t, first.Reused, "it was answered before the crash")
	require.NotNil(t, first.Tree)
	require.Positive(t, of[run.WorkspaceUpdated](left.Events, run.KindWorkspaceUpdated)[0].Changed)
}

// variant is the same grounds with an edited definition.
func (g *grounds) variant(t *testing.T, old, new string) *grounds {
	t.Helper()
	v := *g
	folder := filepath.Join(t.TempDir(), "definition")
	require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Dir(g.file))))
	v.file = filepath.Join(folder, filepath.Base(g.file))
	text := string(read(t, v.file))
	require.Contains(t, text, old)
	require.NoError(t, os.WriteFile(v.file, []byte(strings.Replace(text, old, new, 1)), 0o600))
	var err error
	v.def, err = operations.Load(os.DirFS(folder), filepath.Base(v.file), v.file)
	require.NoError(t, err)
	v.def.Home = folder
	return &v
}

const loop = "{max: 4, until: verdict == done and tests == ok}"

// testNothingChanged: the plan has two turns; in the third the agent has nothing to do.
func testNothingChanged(t *testing.T, g *grounds) {
	v := g.variant(t, loop, "{max: 3, until: verdict == done and tests == failed}")
	s, err := v.newSite("nothing")
	require.NoError(t, err)
	require.NoError(t, s.start(t.Context()))
	require.NoError(t, s.finish(t.Context()))
	versions, err := projector.At(s.dir).Versions()
	require.NoError(t, err)
	last := versions[len(versions)-1]
	require.Equal(t, 3, last.Turn)
	require.Equal(t, run.CategoryOK, last.Outcome)
	require.Equal(t, last.Before, last.Tree)
	require.Equal(t, read(t, filepath.Join(s.dir, layout.SnapshotManifest(2))),
		read(t, filepath.Join(s.dir, layout.SnapshotManifest(3))))
	require.NoError(t, s.watch.over())
}

func testRows(t *testing.T, g *grounds) {
	s := g.cutInTurn2(t, "rows")
	require.NoError(t, s.finish(t.Context()))
	require.NoError(t, s.invariants(g.want))
	left, err := look(s.dir, s.log)
	require.NoError(t, err)
	kinds := map[string][]run.Kind{
		layout.ProvenanceFile: {run.KindWorkspaceUpdated}, layout.TracesFile: {run.KindPassEnd, run.KindPassAttempt},
		layout.CostLog: {run.KindPassEnd, run.KindPassAttempt},
	}
	for file, from := range kinds {
		raw := read(t, filepath.Join(s.dir, file))
		require.NotContains(t, string(raw), s.root, "%s: an absolute path", file)
		complete, _ := lines(raw)
		require.NotEmpty(t, complete)
		for _, line := range complete {
			var row struct {
				Seq  int64  `json:"seq"`
				Call string `json:"call"`
				Path string `json:"path"`
			}
			require.NoError(t, json.Unmarshal(line, &row))
			require.Contains(t, from, left.Events[row.Seq-1].Kind, "%s: %s", file, line)
			if file != layout.CostLog {
				require.NotEmpty(t, row.Call)
			}
			require.True(t, row.Path == "" || filepath.IsLocal(row.Path), "%s: %s", file, line)
		}
	}
	for n := 1; n <= 2; n++ {
		require.NotContains(t, string(read(t, filepath.Join(s.dir, layout.SnapshotManifest(n)))), s.root)
	}
	rows, err := changesOf(s.dir, left)
	require.NoError(t, err)
	var deleted, renamed []string
	for _, c := range rows {
		switch c.Kind {
		case "removed":
			deleted = append(deleted, c.Path)
			require.NotEmpty(t, c.Before)
			require.Empty(t, c.After)
		case "renamed":
			renamed = append(renamed, c.Old+" "+c.Path)
			require.Equal(t, c.Before, c.After)
		}
	}
	require.Equal(t, []string{"draft.txt"}, deleted)
	require.Equal(t, []string{"one.txt in/two.txt"}, renamed)
}

// testTornFiles leaves half a line at the end of everything that grows.
func testTornFiles(t *testing.T, g *grounds) {
	s := g.cutInTurn2(t, "torn")
	for _, name := range []string{layout.EventsFile, layout.TracesFile, layout.ProvenanceFile, layout.CostLog} {
		f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteString(`{"seq":99,"half`)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	require.NoError(t, s.finish(t.Context()))
	left, err := look(s.dir, s.log)
	require.NoError(t, err)
	require.Equal(t, string(run.Done), left.Meta.Status)
	require.Equal(t, g.want.Tree, treeOf(left))
	require.NoError(t, sameOutcome(outcome{Tree: g.want.Tree, Files: g.want.Files, Points: g.want.Points}, left))
	aside, err := filepath.Glob(filepath.Join(s.dir, "_orchestrator", "torn", "*"))
	require.NoError(t, err)
	require.Len(t, aside, 4, "what was torn off is kept")
	require.NoError(t, checked(s.dir))
	require.NoError(t, s.watch.over())
}

// testNoFreshTurns ends the workflow in turn 2 of 3, and resumes from the directory: there is one turn left, and not
// three.
func testNoFreshTurns(t *testing.T, g *grounds) {
	v := g.variant(t, loop, "{max: 3, until: verdict == done and tests == failed}")
	s := v.cutInTurn2(t, "fresh")
	require.NoError(t, s.op.Client.TerminateWorkflow(t.Context(), s.runID, "", "the server is gone for good"))
	st, err := s.op.Start(t.Context(), s.def, projector.At(s.dir))
	require.NoError(t, err)
	require.NotNil(t, st.Reopened)
	require.NoError(t, s.finish(context.Background()))
	left, err := look(s.dir, s.log)
	require.NoError(t, err)
	require.Equal(t, 2, left.Meta.Epoch)
	require.Equal(t, string(run.Done), left.Meta.Status)
	starts, answers := counts(left.Calls)
	require.Equal(t, map[string]int{"worker-1": 1, "worker-2": 2, "worker-3": 1}, starts)
	require.Equal(t, map[string]int{"worker-1": 1, "worker-2": 1, "worker-3": 1}, answers)
	versions, err := projector.At(s.dir).Versions()
	require.NoError(t, err)
	require.Equal(t, 3, versions[len(versions)-1].Turn)
	require.NoError(t, s.watch.over())
}

// testStoreGone takes Temporal's workflow and the store away in the middle of turn 2: the directory is enough to go on.
func testStoreGone(t *testing.T, g *grounds) {
	s := g.cutInTurn2(t, "gone")
	require.NoError(t, s.op.Client.TerminateWorkflow(t.Context(), s.runID, "", "the server is gone for good"))
	require.NoError(t, os.RemoveAll(filepath.Join(s.root, "state", "store")))
	st, err := s.op.Start(t.Context(), s.def, projector.At(s.dir))
	require.NoError(t, err)
	require.NotNil(t, st.Reopened)
	require.Positive(t, st.Reopened.Restored)
	require.NoError(t, s.finish(t.Context()))
	left, err := look(s.dir, s.log)
	require.NoError(t, err)
	require.Equal(t, string(run.Done), left.Meta.Status)
	require.NoError(t, sameOutcome(g.want, left))
	starts, answers := counts(left.Calls)
	require.Equal(t, map[string]int{"worker-1": 1, "worker-2": 2}, starts)
	require.Equal(t, map[string]int{"worker-1": 1, "worker-2": 1}, answers)
	require.NoError(t, s.watch.over())
}

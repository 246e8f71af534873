package e2e_test

import (
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestTurnsSurviveMachineCrash stops the machine, supervisors of calls and all, in the middle of a turn.
func TestTurnsSurviveMachineCrash(t *testing.T) {
	t.Parallel()
	g := newGrounds(t, smallTurns())
	t.Run("the turn is repeated on a clean tree", func(t *testing.T) { testCleanRedo(t, g) })
	t.Run("the directory suffices without a store", func(t *testing.T) { testOnlyDirectory(t, g) })
}

// cutInTurn2 starts a run whose machine stops when the second turn has made half of its edits.
func (g *grounds) cutInTurn2(t *testing.T, name string) *site {
	t.Helper()
	s, err := g.newSite(name)
	require.NoError(t, err)
	require.NoError(t, s.spoil(slow("worker-2", "600")))
	require.NoError(t, s.start(t.Context()))
	cmd, err := s.worker(t.Context(), programs, false)
	require.NoError(t, err)
	until(t, "half of turn 2 is done", func() bool {
		files, err := digests(filepath.Join(s.root, "state", "workspaces")) // a file may go meanwhile
		return err == nil && slices.ContainsFunc(slices.Collect(maps.Keys(files)),
			func(name string) bool { return path.Base(name) == "two.txt" })
	})
	require.NoError(t, s.strike(killed, cmd, nil))
	require.NoError(t, endSupervisors(filepath.Join(s.root, "state", "scratch")))
	return s
}

// testCleanRedo: a turn is repeated on the tree before it, half lines are moved, and earlier snapshots stay.
func testCleanRedo(t *testing.T, g *grounds) {
	s := g.cutInTurn2(t, "clean")
	name := filepath.Join(s.dir, rundir.SnapshotManifest(1))
	before, err := os.Stat(name)
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(s.dir, rundir.SnapshotManifest(2)), "half a turn has no snapshot")
	for _, log := range []string{rundir.EventsFile, rundir.TracesFile, rundir.ProvenanceFile, rundir.CostLog} {
		f, err := os.OpenFile(filepath.Join(s.dir, log), os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteString(`{"seq":99,"half`)
		require.NoError(t, errors.Join(err, f.Close()))
	}
	require.NoError(t, s.finish(t.Context()))
	kept := filepath.Join(s.dir, rundir.EditsDir)
	require.FileExists(t, filepath.Join(kept, "in", "two.txt"), "what the lost call left")
	require.NoError(t, os.RemoveAll(kept)) // no undisturbed run has it
	require.NoError(t, s.invariants(g.want))
	after, err := os.Stat(name)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "the snapshot of turn 1 was replaced")
	require.Equal(t, before.ModTime(), after.ModTime())
	torn, err := filepath.Glob(filepath.Join(s.dir, "_orchestrator", "torn", "*"))
	require.NoError(t, err)
	require.Len(t, torn, 4, "half lines are kept")

	left, err := look(s.dir, s.log)
	require.NoError(t, err)
	starts, _ := counts(left.Calls)
	require.Equal(t, map[string]int{"worker-1": 1, "worker-2": 2}, starts)
	for _, p := range of[run.PassAttempt](left.Events, run.KindPassAttempt) {
		if p.Late > 0 { // the delivery without an answer, whose cost is unknown
			require.Equal(t, run.CategorySuperseded, p.Category)
			continue
		}
		require.Equal(t, run.CategoryLost, p.Category, "the agent reports a folder that is not clean: %s", p.Message)
	}
	for _, log := range []string{rundir.ProvenanceFile, rundir.TracesFile, rundir.CostLog} {
		require.NotContains(t, string(read(t, filepath.Join(s.dir, log))), s.root, "%s: an absolute path", log)
	}
}

// testOnlyDirectory takes the workflow and the store away in turn 2 of 3. The next start restores the store from the
// directory, and there is one turn left, not three. It changes nothing, and is a turn.
func testOnlyDirectory(t *testing.T, g *grounds) {
	v, home, name := *g, filepath.Join(t.TempDir(), "definition"), filepath.Base(g.file)
	require.NoError(t, os.CopyFS(home, os.DirFS(filepath.Dir(g.file))))
	replace(t, home, name, "{max: 4, until: approved and tests.ok}",
		"{max: 3, until: approved and not tests.ok}")
	var err error
	v.def, err = operations.Load(os.DirFS(home), name, filepath.Join(home, name))
	require.NoError(t, err)
	v.def.Home = home
	s := v.cutInTurn2(t, "gone")
	require.NoError(t, s.op.Client.TerminateWorkflow(t.Context(), s.runID, "", "test"))
	require.NoError(t, os.RemoveAll(filepath.Join(s.root, "state", "store")))
	st, err := s.op.Start(t.Context(), s.def, rundir.At(s.dir))
	require.NoError(t, err)
	require.NotNil(t, st.Reopened)
	require.Positive(t, st.Reopened.Restored)
	require.NoError(t, s.finish(t.Context()))
	left, err := look(s.dir, s.log)
	require.NoError(t, err)
	require.Equal(t, 2, left.Meta.Epoch)
	require.Equal(t, string(run.Done), left.Meta.Status)
	starts, answers := counts(left.Calls)
	require.Equal(t, map[string]int{"worker-1": 1, "worker-2": 2, "worker-3": 1}, starts)
	require.Equal(t, map[string]int{"worker-1": 1, "worker-2": 1, "worker-3": 1}, answers)
	require.Equal(t, g.want.Tree, treeOf(left))
	for _, name := range []string{rundir.SnapshotManifest(1), rundir.SnapshotManifest(2)} {
		require.Equal(t, g.want.Files[name], left.Files[name], name)
	}
	versions, err := rundir.At(s.dir).Versions()
	require.NoError(t, err)
	last := versions[len(versions)-1]
	require.Equal(t, 3, last.Turn)
	require.Equal(t, run.CategoryOK, last.Outcome)
	require.Equal(t, last.Before, last.Tree)
	require.Equal(t, left.Files[rundir.SnapshotManifest(2)], left.Files[rundir.SnapshotManifest(3)])
	require.NoError(t, checked(s.dir))
	require.NoError(t, s.watch.over())
}

package operations

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// removal is a run on a git repository with everything that a run leaves.
type removal struct {
	t      *testing.T
	o      Operator
	f      *fakeTemporal
	s      *store.Store
	source string
	dir    rundir.Dir
	entry  string // in the registry
}

const removedRun, removedBranch = "r1", "passbook/fix-it-r1"

var everything = []string{"workflow", "branch", "workspace", "scratch", "environment", "store", "directory", "registry"}

func newRemoval(t *testing.T, status run.Status) *removal {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	ctx, state := t.Context(), t.TempDir()
	m := &removal{t: t, f: &fakeTemporal{attributes: true}, source: must(filepath.EvalSymlinks(t.TempDir()))(t),
		entry: filepath.Join(state, "index", removedRun)}
	m.s = must(store.Open(ctx, "file://"+filepath.Join(state, "store")))(t)
	write(t, m.source, map[string]string{"a.txt": "a\n"})
	m.git("init", "-q", "-b", "main")
	m.git("add", "-A")
	m.git("commit", "-q", "-m", "Begin")
	saved := must(tree.Save(ctx, m.s, m.source, tree.Rules{}, nil))(t)
	of := run.Workspace{Kind: run.WorkspaceGit, Source: m.source, Base: m.git("rev-parse", "HEAD"), Branch: removedBranch,
		Tree: workspace.Blob(saved)}
	events := []entry{{run.KindRunStart, run.RunStart{RunID: removedRun, ThreadID: removedRun, Epoch: 1, Pipeline: "page",
		Artifact: &run.ArtifactRef{File: "page.html", Seed: blobOf(t, m.s, "a seed")}, Workspace: &of}}}
	if status != "" {
		events = append(events, runEnded(status))
	}
	m.dir = directoryOf(t, m.s, removedRun, events...)
	in := inputOf(m.s, removedRun)
	in.Claim.CreatedAt = "2026-01-02T03:04:05.000Z"
	require.NoError(t, register(ctx, in))
	require.NoError(t, Index(state, removedRun, m.dir.Root))
	must(environ.Save(state, environ.Environment{RunID: removedRun, Variables: []string{"PATH=/bin"}}))(t)
	m.o = Operator{Client: m.f, Settings: config.Settings{StateDir: state, RunRoot: filepath.Join(state, "run-root"),
		Store: m.s.URL()}, Host: "here", Namespace: "default"}
	write(t, m.o.Settings.Scratch(), map[string]string{"r1_g0.001.1.-.1.abc/1/stdout": "said\n",
		"r10_g0.001.1.-.1.abc/1/stdout": "output of another run\n"})
	m.git("branch", removedBranch)
	makeFolder(t, m.o, m.s, removedRun, of)
	for i, id := range []string{removedRun, removedRun, "notice/r1/2"} {
		m.f.executions = append(m.f.executions, &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: string(rune('a' + i))}, Status: completed,
		})
	}
	return m
}

func (m *removal) git(args ...string) string { return runGit(m.t, m.source, args...) }

// work is the workspace of the run, and a path in it.
func (m *removal) work(path ...string) string {
	of := workspace.In(m.o.Settings.StateDir).Path(m.source, removedRun, "")
	return filepath.Join(append([]string{of}, path...)...)
}

// makeFolder makes the workspace of a run, and its link in the run directory.
func makeFolder(t *testing.T, o Operator, s *store.Store, runID string, of run.Workspace) (dir string) {
	t.Helper()
	folders := workspace.In(o.Settings.StateDir)
	w := must(folders.Lock(t.Context(), folders.Path(of.Source, runID, "")))(t)
	require.NoError(t, w.Describe(of.Source))
	require.NoError(t, w.Restore(t.Context(), s, of.Tree, tree.Rules{}, nil))
	require.NoError(t, w.Unlock())
	return w.Dir
}

// commits adds a commit to the branch of the run.
func (m *removal) commits() { m.commit("Only here") }

func (m *removal) commit(subject string) {
	m.git("update-ref", "refs/heads/"+removedBranch,
		m.git("commit-tree", "-p", removedBranch, "-m", subject, removedBranch+"^{tree}"))
}

func (m *removal) edits() { write(m.t, m.work(), map[string]string{"new.txt": "new\n"}) }

func (m *removal) list(r Removal) Removable {
	m.t.Helper()
	r.Runs = []string{removedRun}
	all := must(m.o.Removables(m.t.Context(), r))(m.t)
	require.Len(m.t, all, 1)
	return all[0]
}

func (m *removal) remove(r Removal) error {
	r.Runs = []string{removedRun}
	_, err := m.o.Remove(m.t.Context(), r)
	return err
}

// gone requires that nothing of the run is left; after a collection nothing in the store either.
func (m *removal) gone() {
	m.t.Helper()
	require.NoDirExists(m.t, m.dir.Root)
	require.NoFileExists(m.t, m.entry)
	require.Equal(m.t, "main", m.git("branch", "--format=%(refname:short)"))
	require.Empty(m.t, must(os.ReadDir(filepath.Join(m.o.Settings.StateDir, "workspaces")))(m.t))
	require.Empty(m.t, m.f.executions)
	require.Len(m.t, must(os.ReadDir(m.o.Settings.Scratch()))(m.t), 1, "the folder of another run stays")
	require.Empty(m.t, must(os.ReadDir(filepath.Join(m.o.Settings.StateDir, "starts")))(m.t))
	for range 2 {
		must(Collect(m.t.Context(), m.s, collecting(m.o.Settings.StateDir)))(m.t)
	}
	require.Empty(m.t, contents(m.t, m.s))
}

// partsOf are the parts of a run that a removal removes.
func partsOf(p Removable) (out []string) {
	for _, part := range p.Parts {
		out = append(out, part.What)
	}
	return out
}

package operations

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/repo"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
)

// removal is a run on a git repository with everything that a run leaves.
type removal struct {
	t      *testing.T
	o      Operator
	f      *fakeTemporal
	s      *store.Store
	source string
	dir    projector.Dir
	entry  string // in the registry
}

const removedRun, removedBranch = "r1", "passbook/r1"

var everything = []string{"workflow", "checkout", "branch", "scratch", "environment", "store", "directory", "registry"}

func newRemoval(t *testing.T, status run.Status) *removal {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	ctx, state := t.Context(), t.TempDir()
	m := &removal{t: t, f: &fakeTemporal{attributes: true}, source: must(filepath.EvalSymlinks(t.TempDir()))(t),
		entry: filepath.Join(state, "runs", removedRun)}
	m.s = must(store.Open(ctx, "file://"+filepath.Join(state, "store")))(t)
	write(t, m.source, map[string]string{"a.txt": "a\n"})
	m.git("init", "-q", "-b", "main")
	m.git("add", "-A")
	m.git("commit", "-q", "-m", "Begin")
	saved := must(tree.Save(ctx, m.s, m.source, tree.Rules{}, nil))(t)
	events := []entry{{run.KindRunStart, run.RunStart{
		RunID: removedRun, ThreadID: removedRun, Epoch: 1, Pipeline: "page",
		Artifact:  &run.ArtifactRef{File: "page.html", Seed: blobOf(t, m.s, "a seed")},
		Workspace: &run.Workspace{Kind: "git", Source: m.source, Branch: removedBranch, Tree: workspace.Blob(saved)},
	}}}
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
	must(must(repo.Open(ctx, m.source))(t).AddWorktree(ctx, m.work(), removedBranch, "HEAD"))(t)
	for i, id := range []string{removedRun, removedRun, "notice/r1/2"} {
		m.f.executions = append(m.f.executions, &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: string(rune('a' + i))}, Status: completed,
		})
	}
	return m
}

func (m *removal) git(args ...string) string { return git(m.t, m.source, args...) }

// work is the checkout of the run, and a path in it.
func (m *removal) work(path ...string) string {
	return filepath.Join(append([]string{m.dir.Path(layout.WorkspaceDir)}, path...)...)
}

// inWork executes git in the checkout.
func (m *removal) inWork(args ...string) string { return git(m.t, m.work(), args...) }

func (m *removal) commits() { m.inWork("commit", "-q", "--allow-empty", "-m", "Only here") }

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
	require.Len(m.t, strings.Split(m.git("worktree", "list"), "\n"), 1)
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

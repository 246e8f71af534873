package operations

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/repo"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
)

// deletingTemporal has executions, of which it lists all, and deletes them.
type deletingTemporal struct {
	client.Client
	executions []*workflowpb.WorkflowExecutionInfo
	down       error
}

func (f *deletingTemporal) of(id string) *workflowpb.WorkflowExecutionInfo {
	for _, x := range f.executions {
		if x.Execution.WorkflowId == id {
			return x
		}
	}
	return nil
}

func (f *deletingTemporal) ListWorkflow(context.Context,
	*workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: f.executions}, f.down
}

func (f *deletingTemporal) DescribeWorkflow(_ context.Context, id,
	_ string) (*client.WorkflowExecutionDescription, error) {
	x := f.of(id)
	if f.down != nil || x == nil {
		return nil, f.missing()
	}
	d := &client.WorkflowExecutionDescription{}
	d.Status = x.Status
	return d, nil
}

func (f *deletingTemporal) missing() error {
	if f.down != nil {
		return f.down
	}
	return serviceerror.NewNotFound("no such workflow")
}

func (f *deletingTemporal) DescribeWorkflowExecution(_ context.Context, id,
	_ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	x := f.of(id)
	if f.down != nil || x == nil {
		return nil, f.missing()
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: x}, nil
}

func (f *deletingTemporal) WorkflowService() workflowservice.WorkflowServiceClient {
	return deleter{f: f}
}

type deleter struct {
	fakeCluster
	f *deletingTemporal
}

func (d deleter) DeleteWorkflowExecution(_ context.Context, r *workflowservice.DeleteWorkflowExecutionRequest,
	_ ...grpc.CallOption) (*workflowservice.DeleteWorkflowExecutionResponse, error) {
	var left []*workflowpb.WorkflowExecutionInfo
	for _, x := range d.f.executions {
		if x.Execution.RunId != r.WorkflowExecution.RunId {
			left = append(left, x)
		}
	}
	d.f.executions = left
	return &workflowservice.DeleteWorkflowExecutionResponse{}, d.f.down
}

// removal is one run on a git repository, which is over, with everything that a run leaves.
type removal struct {
	t      *testing.T
	o      Operator
	f      *deletingTemporal
	s      *store.Store
	source string
	dir    projector.Dir
	entry  string // in the registry
}

const removedRun, removedBranch = "r1", "passbook/r1"

func newRemoval(t *testing.T, status run.Status) *removal {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	ctx, state := t.Context(), t.TempDir()
	m := &removal{t: t, f: &deletingTemporal{}, source: must(filepath.EvalSymlinks(t.TempDir()))(t),
		entry: filepath.Join(state, "runs", removedRun)}
	var err error
	m.s, err = store.Open(ctx, "file://"+filepath.Join(state, "store"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.s.Close()) })
	lays(t, m.source, map[string]string{"a.txt": "a\n"})
	m.git("init", "-q", "-b", "main")
	m.git("add", "-A")
	m.git("commit", "-q", "-m", "Begin")
	saved, err := tree.Save(ctx, m.s, m.source, tree.Rules{}, nil)
	require.NoError(t, err)
	events := []entry{
		{run.KindRunStart, run.RunStart{
			RunID: removedRun, ThreadID: removedRun, Epoch: 1, Pipeline: "page",
			Artifact: &run.ArtifactRef{File: "page.html", Seed: blobOf(t, m.s, "a seed")},
			Workspace: &run.Workspace{Kind: "git", Source: m.source, Branch: removedBranch,
				Tree: workspace.Blob(saved)},
		}},
	}
	if status != "" {
		events = append(events, entry{run.KindRunEnd, run.RunEnd{Status: status}})
	}
	m.dir = directoryOf(t, m.s, removedRun, events...)
	in := inputOf(m.s, removedRun)
	in.Claim.CreatedAt = "2026-01-02T03:04:05.000Z"
	require.NoError(t, register(ctx, in))
	require.NoError(t, Index(state, removedRun, m.dir.Root))
	_, err = environ.Save(state, environ.Environment{RunID: removedRun, Variables: []string{"PATH=/bin"}})
	require.NoError(t, err)
	m.o = Operator{Client: m.f, Settings: config.Settings{StateDir: state, RunRoot: filepath.Join(state, "run-root"),
		Store: m.s.URL()}, Host: "here", Namespace: "default"}
	lays(t, m.o.Settings.Scratch(), map[string]string{"r1_g0.001.1.-.1.abc/1/stdout": "said\n",
		"r10_g0.001.1.-.1.abc/1/stdout": "another's\n"})
	r, err := repo.Open(ctx, m.source)
	require.NoError(t, err)
	_, err = r.AddWorktree(ctx, m.dir.Path(layout.WorkspaceDir), removedBranch, "HEAD")
	require.NoError(t, err)
	for i, id := range []string{removedRun, removedRun, "notice/r1/2"} {
		m.f.executions = append(m.f.executions, &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: string(rune('a' + i))}, Status: completed,
		})
	}
	return m
}

func (m *removal) git(args ...string) string { return m.gitIn(m.source, args...) }

func (m *removal) gitIn(dir string, args ...string) string {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), "git",
		append([]string{"-c", "user.name=Test", "-c", "user.email=t@localhost"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(m.t, err, string(out))
	return strings.TrimSpace(string(out))
}

func (m *removal) list(r Removal) Removable {
	m.t.Helper()
	r.Runs = []string{removedRun}
	all, err := m.o.Removables(m.t.Context(), r)
	require.NoError(m.t, err)
	require.Len(m.t, all, 1)
	return all[0]
}

func (m *removal) remove(r Removal) error {
	r.Runs = []string{removedRun}
	_, err := m.o.Remove(m.t.Context(), r)
	return err
}

// gone wants nothing of the run to be left; after a collection nothing in the store either.
func (m *removal) gone() {
	m.t.Helper()
	require.NoDirExists(m.t, m.dir.Root)
	require.NoFileExists(m.t, m.entry)
	require.Equal(m.t, "main", m.git("branch", "--format=%(refname:short)"))
	require.Len(m.t, strings.Split(m.git("worktree", "list"), "\n"), 1)
	require.Empty(m.t, m.f.executions)
	scratch, err := os.ReadDir(m.o.Settings.Scratch())
	require.NoError(m.t, err)
	require.Len(m.t, scratch, 1, "another run's stays")
	locks, err := os.ReadDir(filepath.Join(m.o.Settings.StateDir, "starts"))
	require.NoError(m.t, err)
	require.Empty(m.t, locks)
	for range 2 {
		_, err = Collect(m.t.Context(), m.s, collecting(m.o.Settings.StateDir))
		require.NoError(m.t, err)
	}
	require.Empty(m.t, contents(m.t, m.s))
}

func whats(p Removable) (out []string) {
	for _, part := range p.Parts {
		out = append(out, part.What)
	}
	return out
}

var everything = []string{"workflow", "checkout", "branch", "scratch", "environment", "store", "directory", "registry"}

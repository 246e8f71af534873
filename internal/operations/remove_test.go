package operations

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestRemovablesListsEverything that a run has left, and changes nothing.
func TestRemovablesListsEverything(t *testing.T) {
	m := newRemoval(t, run.Done)
	same, stored, refs := unchanged(t, m.dir.Root), contents(t, m.s), m.git("for-each-ref")
	p := m.list(Removal{})
	require.Empty(t, p.Problems)
	require.Equal(t, everything, partsOf(p))
	require.Equal(t, Amount{Objects: 3}, p.Parts[0].Amount)
	require.Equal(t, removedBranch+" in "+m.source, p.Parts[1].Where)
	require.Equal(t, m.work(), p.Parts[2].Where)
	require.Equal(t, Amount{1, 5}, p.Parts[3].Amount)
	require.Equal(t, m.dir.Root, p.Parts[6].Where)
	require.Greater(t, p.Parts[6].Amount.Bytes, int64(1000))
	require.Equal(t, m.entry, p.Parts[7].Where)
	require.Empty(t, p.Kept)
	same()
	require.Equal(t, stored, contents(t, m.s))
	require.Equal(t, refs, m.git("for-each-ref"))
	require.Len(t, m.f.executions, 3)
}

// TestRemove removes all of it, and a second time there is nothing to do.
func TestRemove(t *testing.T) {
	m := newRemoval(t, run.Failed)
	require.NoError(t, m.remove(Removal{}))
	require.NoDirExists(t, m.dir.Root)
	require.NoError(t, m.remove(Removal{}), "the store still has objects of it")
	m.gone()
	var name *NameError
	require.ErrorAs(t, m.remove(Removal{}), &name)
}

// TestRemoveRefuses what is live, and what would be lost; nothing is removed then.
func TestRemoveRefuses(t *testing.T) {
	open := func(m *removal) { m.f.executions[0].Status = isOpen }
	for name, row := range map[string]struct {
		status   run.Status
		damage   func(*removal)
		how      Removal
		messages []string
	}{
		"running": {"", open, Removal{},
			[]string{"run r1", "it is running. End it first: starter cancel r1"}},
		"about to close": {run.Done, open, Removal{}, []string{"its workflow is about to close"}},
		"no server": {run.Done,
			func(m *removal) { m.f.err = serviceerror.NewUnavailable("connection refused") }, Removal{},
			[]string{"whether it is live is unknown", "connection refused", "--offline"}},
		"offline, and running": {"", func(*removal) {}, Removal{Offline: true},
			[]string{"recorded as running", "without --offline"}},
		"commits": {run.Done, (*removal).commits, Removal{},
			[]string{"Only here", "merge " + removedBranch, "--keep-branch", "--discard"}},
		"changes, and the branch is kept": {run.Done, (*removal).edits, Removal{KeepBranch: true},
			[]string{"workspace", "changes that the run did not make (new.txt)", "--discard"}},
		"commits and changes": {run.Done, func(m *removal) { m.commits(); m.edits() }, Removal{},
			[]string{"Only here", "new.txt"}},
		"checked out elsewhere": {run.Done, func(m *removal) {
			m.git("switch", "-q", removedBranch)
		}, Removal{}, []string{"is checked out at"}},
		"another host": {run.Done, func(m *removal) {
			raw := string(must(os.ReadFile(m.dir.Path(rundir.ClaimFile)))(m.t))
			write(m.t, m.dir.Root, map[string]string{
				rundir.ClaimFile: strings.Replace(raw, `"host": "here"`, `"host": "there"`, 1)})
		}, Removal{}, []string{"on another host (there)"}},
		"the record of the workspace is damaged": {run.Done, func(m *removal) {
			require.NoError(m.t, os.WriteFile(m.work()+".json", []byte("{"), 0o600))
		}, Removal{}, []string{"changes that the run did not make (a.txt)"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newRemoval(t, row.status)
			row.damage(m)
			same, stored := unchanged(t, m.dir.Root), contents(t, m.s)
			err := m.remove(row.how)
			var refused *RemoveError
			require.ErrorAs(t, err, &refused)
			for _, s := range row.messages {
				require.ErrorContains(t, err, s)
			}
			if name == "running" {
				var c *run.ConflictError
				require.ErrorAs(t, err, &c)
				require.Equal(t, run.Running, c.From)
				require.Contains(t, c.Allowed, run.Cancel)
			}
			same()
			require.Equal(t, stored, contents(t, m.s))
			require.Len(t, m.f.executions, 3)
			require.FileExists(t, m.entry)
		})
	}
	t.Run("no run", func(t *testing.T) {
		dir, o := t.TempDir(), Operator{}
		_, err := o.Removables(t.Context(), Removal{Runs: []string{dir}})
		require.ErrorIs(t, err, rundir.ErrNoRun)
		write(t, dir, map[string]string{rundir.EventsFile: ""})
		_, err = o.Removables(t.Context(), Removal{Runs: []string{dir}})
		require.ErrorIs(t, err, rundir.ErrNoRun)
	})
	t.Run("another process writes there", func(t *testing.T) {
		m := newRemoval(t, run.Done)
		lock := must((disk.Disk{}).TryLock(m.dir.Path(rundir.LockFile), disk.Self("rebuild", time.Now())))(t)
		err := m.remove(Removal{})
		require.ErrorContains(t, err, "is being written by rebuild")
		require.Len(t, m.f.executions, 3)
		require.DirExists(t, m.work())
		require.NoError(t, lock.Unlock())
		require.NoError(t, m.remove(Removal{}))
		m.gone()
	})
}

// TestRemoveWithoutTheRepository: what happened to the repository or to the workspace does not prevent the removal, and
// edits are reported first.
func TestRemoveWithoutTheRepository(t *testing.T) {
	for name, row := range map[string]struct {
		damage func(*removal)
		kept   string // empty: nothing
		repair func(*removal)
	}{
		"moved": {func(m *removal) { require.NoError(m.t, os.Rename(m.source, m.source+"-away")) }, "is not found",
			func(m *removal) {
				require.NoError(m.t, os.Rename(m.source+"-away", m.source))
				m.git("branch", "-D", removedBranch)
			}},
		"cloned again": {func(m *removal) {
			require.NoError(m.t, os.Rename(m.source, m.source+"-away"))
			runGit(m.t, filepath.Dir(m.source), "clone", "-q", m.source+"-away", m.source)
		}, "", nil},
		"the branch was renamed": {func(m *removal) { m.git("branch", "-m", removedBranch, "passbook/mine-r1") }, "", nil},
		"the branch is gone":     {func(m *removal) { m.git("branch", "-D", removedBranch) }, "", nil},
		"the run directory moved": {func(m *removal) {
			to := filepath.Join(m.t.TempDir(), "moved")
			require.NoError(m.t, os.Rename(m.dir.Root, to))
			require.NoError(m.t, Index(m.o.Settings.StateDir, removedRun, to))
			m.dir = rundir.At(to)
		}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := newRemoval(t, run.Done)
			row.damage(m)
			m.edits()
			require.ErrorContains(t, m.remove(Removal{}), "(new.txt)")
			require.Len(t, m.f.executions, 3, "nothing was removed")
			require.NoError(t, os.Remove(m.work("new.txt")))
			if p := m.list(Removal{}); row.kept == "" {
				require.Empty(t, p.Kept)
			} else {
				require.Contains(t, p.Kept[0], row.kept)
			}
			require.NoError(t, m.remove(Removal{}))
			if row.repair != nil {
				row.repair(m)
			}
			m.gone()
		})
	}
}

// TestRemoveWorkspaces: all folders of a run, and none of another one.
func TestRemoveWorkspaces(t *testing.T) {
	m := newRemoval(t, run.Done)
	lane, other := m.work()+"-lane-1", filepath.Join(filepath.Dir(m.work()), "r10")
	for _, dir := range []string{lane, other} {
		write(t, dir, map[string]string{"a.txt": "by hand\n"})
		write(t, filepath.Dir(dir), map[string]string{filepath.Base(dir) + ".json": `{"version":1}`})
	}
	require.ErrorContains(t, m.remove(Removal{}), lane+" has changes that the run did not make (a.txt)")
	require.NoError(t, os.RemoveAll(m.work()), "by hand")
	require.NoError(t, m.remove(Removal{Discard: true}))
	require.NoDirExists(t, lane)
	require.FileExists(t, filepath.Join(other, "a.txt"))
	require.NoError(t, os.RemoveAll(filepath.Dir(other)))
	m.gone()
}

// TestRemoveFollowsNoLink: a link that has replaced the workspace is removed, and not what it leads to.
func TestRemoveFollowsNoLink(t *testing.T) {
	m, precious := newRemoval(t, run.Done), t.TempDir()
	write(t, precious, map[string]string{"a.txt": "mine\n"})
	require.NoError(t, os.RemoveAll(m.work()))
	require.NoError(t, os.Symlink(precious, m.work()))
	require.NoError(t, m.remove(Removal{Discard: true}))
	require.FileExists(t, filepath.Join(precious, "a.txt"))
	m.gone()
}

// TestRemoveInterruptedStart: a start that was killed has left a claim, the record of the workspace, a branch, or
// fewer of them.
func TestRemoveInterruptedStart(t *testing.T) {
	for name, begin := range map[string]func(m *removal, p preparation){
		"claimed": func(*removal, preparation) {},
		"described": func(m *removal, p preparation) {
			require.NoError(m.t, p.describe(m.t.Context(), run.Workspace{Source: m.source}))
		},
		"with a branch": func(m *removal, p preparation) {
			r := must(git.Open(m.t.Context(), m.source))(m.t)
			require.NoError(m.t, p.begin(m.t.Context(), r, run.Workspace{Source: m.source, Branch: "passbook/it-r2"}, "HEAD"))
		},
		"with a workspace": func(m *removal, p preparation) {
			def := Definition{Plan: &pipeline.Plan{Pipeline: "it", Workspace: &pipeline.Workspace{Git: "worktree"}}}
			must(p.ofGit(m.t.Context(), &def, m.source))(m.t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newRemoval(t, run.Done)
			require.NoError(t, m.remove(Removal{}))
			m.f.executions = nil
			m.dir = rundir.At(filepath.Join(t.TempDir(), "r2"))
			claim := run.Claim{Version: 1, RunID: "r2", ThreadID: "r2", Store: m.s.URL(), Pipeline: "it"}
			require.NoError(t, m.dir.Take(claim))
			m.entry = filepath.Join(m.o.Settings.StateDir, "index", "r2")
			require.NoError(t, Index(m.o.Settings.StateDir, "r2", m.dir.Root))
			begin(m, preparation{s: m.s, folders: workspace.In(m.o.Settings.StateDir), dir: m.dir, claim: claim})
			must(m.o.Remove(t.Context(), Removal{Runs: []string{"r2"}}))(t)
			m.gone()
		})
	}
}

// TestRemoveReportsAFailedPart lists what was removed and what was not; the same command removes the rest.
func TestRemoveReportsAFailedPart(t *testing.T) {
	m := newRemoval(t, run.Done)
	lock := filepath.Join(m.source, ".git/refs/heads", removedBranch+".lock")
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	err := m.remove(Removal{})
	var failed *RemovalError
	require.ErrorAs(t, err, &failed)
	require.Len(t, failed.Runs, 1)
	require.False(t, failed.Runs[0].Removed())
	require.Regexp(t,
		`(?s)^remove run r1: branch: .*lock.*\nRun r1:\n  removed      workflow .*\n  not removed  branch .*\n  not `+
			`removed  registry .*\nFix the cause and run the same command again`, err.Error())
	require.FileExists(t, m.work("a.txt"))
	require.NoError(t, os.Remove(lock))
	require.NoError(t, m.remove(Removal{}))
	m.gone()
}

// TestRemoveKeepsEdits: an edit in the copy of a folder, or of the artifact, is not work of the run.
func TestRemoveKeepsEdits(t *testing.T) {
	m := newRemoval(t, run.Done)
	ctx := t.Context()
	source := t.TempDir()
	write(t, source, map[string]string{"a.txt": "a\n", "b/c.txt": "c\n"})
	saved := must(tree.Save(ctx, m.s, source, tree.Rules{}, nil))(t)
	of := run.Workspace{Kind: run.WorkspaceDir, Source: source, Tree: workspace.Blob(saved)}
	made := blobOf(t, m.s, "<!DOCTYPE html>\n")
	d := directoryOf(t, m.s, "r2", entry{run.KindRunStart, run.RunStart{
		RunID: "r2", ThreadID: "r2", Epoch: 1, Pipeline: "page",
		Artifact:  &run.ArtifactRef{File: "page.html", Seed: made},
		Workspace: &of,
	}}, runEnded(run.Done))
	require.NoError(t, Index(m.o.Settings.StateDir, "r2", d.Root))
	work := makeFolder(t, m.o, m.s, "r2", of)
	write(t, d.Root, map[string]string{"page.html": "<!DOCTYPE html>\n"})
	remove := func(discard bool) error {
		_, err := m.o.Remove(ctx, Removal{Runs: []string{"r2"}, Discard: discard})
		return err
	}
	write(t, d.Root, map[string]string{"page.html": "mine\n"})
	write(t, work, map[string]string{"a.txt": "mine, too\n", "new/deep.txt": "new\n"})
	err := remove(false)
	require.ErrorContains(t, err, work+" has changes that the run did not make (a.txt, new/deep.txt)")
	require.ErrorContains(t, err, "changes that the run did not make (page.html)")
	require.ErrorContains(t, err, "--discard")
	require.FileExists(t, filepath.Join(work, "new", "deep.txt"))
	write(t, d.Root, map[string]string{"page.html": "<!DOCTYPE html>\n"})
	write(t, work, map[string]string{"a.txt": "a\n"})
	require.NoError(t, os.RemoveAll(filepath.Join(work, "new")))
	require.NoError(t, os.RemoveAll(filepath.Join(work, "b"))) // a removal that was cut off has removed it
	require.Empty(t, must(m.o.Removables(ctx, Removal{Runs: []string{"r2"}}))(t)[0].Problems)
	write(t, work, map[string]string{"a.txt": "mine, too\n"})
	kept := must(d.KeepFile(work, "a.txt"))(t)
	write(t, work, map[string]string{"a.txt": "a\n"})
	require.ErrorContains(t, remove(false), "changes that the run did not make ("+kept+")", "the only copy")
	require.NoError(t, remove(true))
	require.NoDirExists(t, d.Root)
	require.NoDirExists(t, work)
}

// TestRemoveDiscards: what only workspace and branch have is lost with --discard, and the branch stays with --keep-branch.
func TestRemoveDiscards(t *testing.T) {
	m := newRemoval(t, run.Done)
	m.commits()
	at := m.git("rev-parse", removedBranch)
	p := m.list(Removal{KeepBranch: true})
	require.NotContains(t, partsOf(p), "branch")
	require.Contains(t, p.Kept[0], removedBranch)
	require.NoError(t, m.remove(Removal{KeepBranch: true}))
	require.Equal(t, at, m.git("rev-parse", removedBranch))
	require.NoDirExists(t, m.dir.Root)

	m = newRemoval(t, run.Done)
	m.commits()
	m.edits()
	require.NoError(t, m.remove(Removal{Discard: true}))
	m.gone()
}

// TestRemoveCountsADelivery: the commits of a run whose result was delivered as one commit are not lost while that
// commit exists.
func TestRemoveCountsADelivery(t *testing.T) {
	m := newRemoval(t, run.Done)
	m.commits()
	at := m.git("rev-parse", removedBranch)
	m.git("branch", "result")
	s := removed{state: run.State{Commit: at, Delivery: &run.Delivered{Delivered: true, To: "branch", Target: "result",
		Commit: m.git("rev-parse", "result")}}}
	source := must(git.Open(t.Context(), m.source))(t)
	own := must(source.OwnWork(t.Context(), removedBranch))(t)
	g := gitRemoval{p: &Removable{}, s: s, source: source}
	require.Contains(t, g.delivered(t.Context(), own, nil), "delivered to the branch result")

	m.commit("By hand")
	later := must(source.OwnWork(t.Context(), removedBranch))(t)
	require.Empty(t, g.delivered(t.Context(), later, nil), "a commit after the delivery")
	g.s.state.Delivery.Commit = ""
	require.Empty(t, g.delivered(t.Context(), own, nil), "files in a checkout may have been reset since")
	g.s.state.Delivery.Commit = at
	require.Empty(t, g.delivered(t.Context(), own, []string{removedBranch}), "what was delivered is gone")
}

// TestRemoveOffline leaves the executions, and nothing else.
func TestRemoveOffline(t *testing.T) {
	m := newRemoval(t, run.Done)
	m.o.Client = nil
	p := m.list(Removal{Offline: true})
	require.Equal(t, everything[1:], partsOf(p))
	require.Contains(t, p.Kept[0], "until their retention ends")
	require.NoError(t, m.remove(Removal{Offline: true}))
	require.Len(t, m.f.executions, 3)
	m.o.Client = m.f
	require.NoError(t, m.remove(Removal{}), "the executions are removed later")
	m.gone()
}

// TestRemoveKeepsForeignFiles: other files in the directory are named and stay; what a link leads to is not touched.
func TestRemoveKeepsForeignFiles(t *testing.T) {
	m := newRemoval(t, run.Done)
	outside := t.TempDir()
	write(t, outside, map[string]string{"precious.txt": "mine\n"})
	write(t, m.dir.Root, map[string]string{"notes.txt": "mine\n", "_orchestrator/mine.md": "mine\n"})
	for _, link := range []string{"link", "_orchestrator/passes/link"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(m.dir.Path(link)), 0o755))
		require.NoError(t, os.Symlink(outside, m.dir.Path(link)))
	}
	require.NoError(t, os.RemoveAll(m.dir.Path("snapshots")))
	require.NoError(t, os.Symlink(outside, m.dir.Path("snapshots")))
	p := m.list(Removal{})
	for i, name := range []string{"link", "notes.txt", "snapshots", "_orchestrator/mine.md"} {
		require.Equal(t, m.dir.Path(name)+": the run did not create it", p.Kept[i])
	}
	require.NoError(t, m.remove(Removal{}))
	require.Equal(t, map[string]string{"precious.txt": "mine\n"}, filesIn(t, outside))
	left := must(os.ReadDir(m.dir.Root))(t)
	require.Len(t, left, 4)
	require.Equal(t, "_orchestrator", left[0].Name())
	require.FileExists(t, m.dir.Path("_orchestrator/mine.md"))
	require.NoFileExists(t, m.entry)
}

// TestRemoveCompletesAnInterruptedRemoval after it was cut off before any of its steps, or within the last one of them
// that removes many things.
func TestRemoveCompletesAnInterruptedRemoval(t *testing.T) {
	for k := range everything {
		t.Run("before "+everything[k], func(t *testing.T) {
			m := newRemoval(t, run.Done)
			p := m.list(Removal{})
			p.Parts = p.Parts[:k]
			require.NoError(t, p.removeParts(t.Context()))
			require.NoError(t, m.remove(Removal{}))
			m.gone()
		})
	}
	for name, cut := range map[string]func(t *testing.T, m *removal){
		"only the claim is left": func(t *testing.T, m *removal) {
			c := must(rundir.ReadContents(m.dir))(t)
			for _, name := range c.Own[:len(c.Own)-1] {
				require.NoError(t, os.RemoveAll(m.dir.Path(name)))
			}
			require.FileExists(t, m.dir.Path(rundir.ClaimFile))
		},
		"the claim is gone, too": func(t *testing.T, m *removal) {
			require.NoError(t, os.RemoveAll(m.dir.Root))
			require.NoError(t, os.Mkdir(m.dir.Root, 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newRemoval(t, run.Done)
			p := m.list(Removal{})
			for _, part := range p.Parts[:6] {
				require.NoError(t, part.remove(t.Context()))
			}
			cut(t, m)
			require.NoError(t, m.remove(Removal{}))
			m.gone()
		})
	}
}

// TestRemoveAfterTheDirectory was deleted by hand: by id, or by where it was.
func TestRemoveAfterTheDirectory(t *testing.T) {
	workflowOnly := func(m *removal) { // neither this host nor the store has recorded the run
		require.NoError(m.t, os.Remove(m.entry))
		m.o.Settings.Store = testStore(m.t).URL()
		for _, x := range m.f.executions {
			x.Type = &commonpb.WorkflowType{Name: contract.PipelineWorkflow}
			x.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{"host": payloadOf(m.t, "here")}}
		}
	}
	for name, row := range map[string]struct {
		become func(*removal)
		path   bool // it is named by its directory
		lost   bool // the store
	}{
		"by id":                  {become: func(*removal) {}},
		"by path":                {become: func(*removal) {}, path: true},
		"the host has no record": {become: func(m *removal) { require.NoError(m.t, os.Remove(m.entry)) }},
		"only Temporal has it":   {become: workflowOnly, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newRemoval(t, run.Done)
			require.NoError(t, os.RemoveAll(m.dir.Root))
			row.become(m)
			r := Removal{Runs: []string{removedRun}, Discard: row.lost}
			if row.path {
				r.Runs[0] = m.dir.Root
			}
			want := []string{"workflow", "branch", "workspace", "scratch", "environment", "store", "registry"}
			if _, err := os.Lstat(m.entry); err != nil {
				want = want[:len(want)-1]
			}
			all := must(m.o.Remove(t.Context(), r))(t)
			require.Equal(t, want, partsOf(all[0]))
			require.True(t, all[0].Removed())
			if row.lost {
				require.Empty(t, m.f.executions)
				require.Equal(t, "main", m.git("branch", "--format=%(refname:short)"))
				require.NoDirExists(t, m.work())
				return
			}
			m.gone()
		})
	}
}

// TestCancelWithoutDirectory cancels the open workflow of a run by its id, if its directory was deleted.
func TestCancelWithoutDirectory(t *testing.T) {
	const id = "0b5d1c0e-5b1e-4a56-9d3c-2f1f0f6f7a10"
	recorded, unknownRun := &MissingError{RunID: id, Dir: "/gone"}, &NameError{What: id}
	const nothing = "cancel refused: run " + id + " has no directory and no open workflow, so nothing of it runs. To " +
		"remove what is left: starter remove " + id + "; to restore the directory: starter rebuild " + id +
		" --output-dir DIR"
	for name, row := range map[string]struct {
		missing error
		status  enumspb.WorkflowExecutionStatus // of the workflow; 0: there is none
		kind    string
		refused string
	}{
		"open":                          {recorded, isOpen, contract.PipelineWorkflow, ""},
		"open, and not recorded":        {unknownRun, isOpen, contract.PipelineWorkflow, ""},
		"closed":                        {recorded, completed, contract.PipelineWorkflow, nothing},
		"closed, and not recorded":      {unknownRun, terminated, contract.PipelineWorkflow, nothing},
		"lost":                          {recorded, 0, "", nothing},
		"unknown":                       {unknownRun, 0, "", unknownRun.Error()},
		"another program's, of that id": {unknownRun, isOpen, "Other", unknownRun.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeTemporal{}
			if row.status != 0 {
				f.executions = []*workflowpb.WorkflowExecutionInfo{{Status: row.status,
					Execution: &commonpb.WorkflowExecution{WorkflowId: id}, Type: &commonpb.WorkflowType{Name: row.kind}}}
			}
			named, lost := WithoutDirectory(id, row.missing)
			require.True(t, lost)
			require.Equal(t, id, named)
			err := Operator{Client: f}.CancelID(t.Context(), id, row.missing)
			if row.refused != "" {
				require.EqualError(t, err, row.refused)
				require.Empty(t, f.cancelled)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{id}, f.cancelled)
		})
	}
	for name, err := range map[string]error{"": nil, "typo": &NameError{What: "typo"},
		id: &NameError{What: id, Found: []string{id + "-a", id + "-b"}}} {
		_, lost := WithoutDirectory(name, err)
		require.False(t, lost, name)
	}
}

// TestRemoveKeepsSourcesOfRuns: a fork needs the source's calls and checkpoints. They stay until it is removed too.
func TestRemoveKeepsSourcesOfRuns(t *testing.T) {
	m := newRemoval(t, run.Done)
	fork := rundir.At(filepath.Join(t.TempDir(), "r2"))
	require.NoError(t, fork.Take(run.Claim{Version: 1, RunID: "r2", ThreadID: removedRun, SourceRun: removedRun,
		Mode: run.ModeFork, Store: m.s.URL()}))
	require.NoError(t, Index(m.o.Settings.StateDir, "r2", fork.Root))
	require.Contains(t, m.list(Removal{}).Kept[0], "as long as these runs need them: r2 (fork)")
	require.NoError(t, m.remove(Removal{}))
	before := contents(t, m.s)
	must(Collect(t.Context(), m.s, collecting(m.o.Settings.StateDir)))(t)
	require.Equal(t, before, contents(t, m.s))
	must(m.o.Remove(t.Context(), Removal{Runs: []string{"r2"}}))(t)
	m.gone()
}

// TestRemoveSeveral: of two runs one of which may not be removed, none is.
func TestRemoveSeveral(t *testing.T) {
	m := newRemoval(t, run.Done)
	other := page(t, m.s, "r2", "two", "")
	require.NoError(t, Index(m.o.Settings.StateDir, "r2", other.Root))
	m.f.executions = append(m.f.executions, &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: "r2", RunId: "z"},
		Status:    enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	})
	_, err := m.o.Remove(t.Context(), Removal{Runs: []string{removedRun, "r2"}})
	var refused *RemoveError
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Runs, 1)
	var conflict *run.ConflictError
	require.ErrorAs(t, refused.Runs[0].Problems[0], &conflict)
	require.Equal(t, run.Running, conflict.From)
	require.DirExists(t, m.dir.Root)
}

package activities

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// changes returns what an agent changed in the workspace, or nil. Protected files are restored.
func (j evaluation) changes(left guarded) (*run.WorkspaceUpdated, error) {
	if left.tree == nil || left.tree.Digest == j.in.Tree.Tree.Digest {
		return nil, nil
	}
	ev, err := workspace.Compare(j.ctx, j.s, j.in.Tree.Tree, *left.tree)
	if err != nil {
		return nil, err
	}
	ev.Skipped, ev.SkippedCount = j.ans.Skipped, j.ans.SkippedCount
	return ev, nil
}

// SyncWorkspace makes the workspace hold an accepted tree, and commits it on the run's branch. Repeating it changes
// nothing.
func (a *Activities) SyncWorkspace(ctx context.Context,
	in contract.SyncWorkspaceInput) (contract.SyncWorkspaceResult, error) {
	defer a.keepAlive(ctx)()
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.SyncWorkspaceResult{}, err
	}
	res, err := a.syncWorkspace(ctx, s, in)
	if err != nil || in.DiffFrom == nil {
		return res, err
	}
	res.Changes, err = workspace.Compare(ctx, s, *in.DiffFrom, in.Tree.Tree)
	return res, err
}

func (a *Activities) syncWorkspace(ctx context.Context, s *store.Store,
	in contract.SyncWorkspaceInput) (res contract.SyncWorkspaceResult, err error) {
	w, err := a.lockFolder(ctx, in.Target, in.Tree)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, w.Unlock()) }()
	if res.Commit, err = commitTree(ctx, s, in); err != nil { // before the files: a refused commit changes nothing
		return res, err
	}
	kept, err := a.restoreFolder(ctx, s, w, in.Tree, a.open(in.Dir))
	if err != nil {
		return res, err
	}
	if len(kept) > 0 {
		res.Recovered = []contract.RecoveredError{{Category: run.CategoryFileIO, Message: keptMessage(kept)}}
	}
	return res, a.showCommit(ctx, w, in.Tree, res.Commit)
}

// showCommit lets git in the workspace compare it with a commit of the run.
func (a *Activities) showCommit(ctx context.Context, w *workspace.Folder, t contract.Tree, commit string) error {
	if commit == "" || w.New() || w.Lost() {
		return nil
	}
	t.Commit = commit
	_, err := workspace.RemakeGit(ctx, a.stateDir(), workspace.Current(t), w.Dir)
	return err
}

// lockFolder locks the workspace of a run, and lets the run directory lead to it.
func (a *Activities) lockFolder(ctx context.Context, t contract.Target, of contract.Tree) (*workspace.Folder, error) {
	path := a.folders.Path(of.Workspace.Source, t.RunID, "")
	if err := a.open(t.Dir).LinkWorkspace(path); err != nil {
		return nil, err
	}
	w, err := a.folders.Lock(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := endHolder(ctx, w, ""); err != nil {
		return nil, errors.Join(err, w.Unlock())
	}
	return w, nil
}

// restoreFolder makes a folder hold a tree, and returns what of others was kept in the run directory. A folder in which a
// call was lost is made again.
func (a *Activities) restoreFolder(ctx context.Context, s *store.Store, w *workspace.Folder, t contract.Tree,
	d rundir.Dir) (kept []string, err error) {
	rules, err := a.rules(ctx, s, t)
	if err != nil {
		return nil, err
	}
	lost, restore := w.Lost(), w.Restore
	if lost || w.New() {
		restore = w.Remake
	}
	err = restore(ctx, s, t.Tree, rules, func(path string) error {
		to, err := d.KeepFile(w.Dir, path)
		kept = append(kept, path+" (now "+to+")")
		return err
	})
	if err != nil || !lost {
		return kept, err
	}
	return kept, w.Release()
}

// rules returns what belongs to the tree of a workspace.
func (a *Activities) rules(ctx context.Context, s *store.Store, t contract.Tree) (tree.Rules, error) {
	plan, err := a.plan(ctx, s, t.Plan)
	if err != nil {
		return tree.Rules{}, err
	}
	return a.folders.WithGit(ctx, s, workspace.RulesOf(plan), workspace.Current(t))
}

// keptMessage describes files that an operator changed, and where their versions are now.
func keptMessage(kept []string) string {
	slices.Sort(kept)
	return fmt.Sprintf("%s of the workspace had changes from outside of the run, which are kept: %s",
		run.Plural(len(kept), "file"), firstNames(kept))
}

// lostMessage describes what a call left that was lost.
func lostMessage(kept []string) string {
	slices.Sort(kept)
	return "the call that worked in the workspace before was lost; kept what it left: " + firstNames(kept)
}

func firstNames(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// commitTree commits a tree on the run's branch. Without its repository the run fails; a folder has none.
func commitTree(ctx context.Context, s *store.Store, in contract.SyncWorkspaceInput) (string, error) {
	of := in.Tree.Workspace
	if of.Kind != run.WorkspaceGit {
		return "", nil
	}
	source, err := git.Open(ctx, of.Source)
	if err != nil {
		return "", explainMissingSource(ctx, of.Source, err)
	}
	if in.Previous == nil {
		return "", badInput("commit the tree %s: the tree of its parent is missing", in.Tree.Tree.Digest)
	}
	files, err := workspace.FilesSince(ctx, s, *in.Previous, in.Tree.Tree)
	if err != nil {
		return "", err
	}
	parent := in.Tree.Commit
	if parent == "" {
		parent = of.Base
	}
	return source.Record(ctx, git.Commit{
		Branch: of.Branch, Parent: parent, Start: of.Base, Message: in.Message, Files: files,
		Own: "Passbook-Run: " + in.RunID,
	})
}

// inspectTree compares the workspace with the tree in the journal, and takes over edits made while the run was paused.
// What calls left there is not an edit.
func (a *Activities) inspectTree(ctx context.Context, in contract.InspectInput) (res contract.InspectResult, err error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return res, err
	}
	w, err := a.lockFolder(ctx, in.Target, *in.Tree)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, w.Unlock()) }()
	if !in.Back {
		if unread, err := unreadAnswer(ctx, s, w); unread || err != nil {
			return res, err
		}
	}
	if w.New() || w.Lost() {
		res.Restored = w.New()
		kept, err := a.restoreFolder(ctx, s, w, *in.Tree, a.open(in.Dir))
		if len(kept) > 0 {
			res.Recovered = []contract.RecoveredError{{Category: run.CategoryFileIO, Message: lostMessage(kept)}}
		}
		if err == nil {
			err = a.showCommit(ctx, w, *in.Tree, workspace.Current(*in.Tree).Commit)
		}
		return res, err
	}
	rules, err := a.rules(ctx, s, *in.Tree)
	if err != nil {
		return res, err
	}
	saved, err := w.Edits(ctx, s, in.Tree.Tree, rules)
	if err != nil {
		return res, err
	}
	// the next restore keeps files of submodules in the run directory
	edited, _, err := workspace.Protect(ctx, s, in.Tree.Tree, workspace.Blob(saved), func(name string, _ bool) bool {
		return in.Tree.Workspace.InSubmodule(name)
	})
	if err != nil || edited.Digest == in.Tree.Tree.Digest {
		return res, err
	}
	ev, err := workspace.Compare(ctx, s, in.Tree.Tree, edited)
	if err != nil {
		return res, err
	}
	ev.Cause = run.CauseEdited
	ev.Skipped, ev.SkippedCount = workspace.Skipped(saved)
	record := contract.SyncWorkspaceInput{Target: in.Target, Tree: *in.Tree, Previous: &in.Tree.Tree,
		Message: fmt.Sprintf("Record manual changes\n\nPassbook-Run: %s\n", in.RunID)}
	record.Tree.Tree = ev.Tree
	if ev.Commit, err = commitTree(ctx, s, record); err == nil {
		err = a.showCommit(ctx, w, record.Tree, ev.Commit)
	}
	return contract.InspectResult{Workspace: ev}, err
}

// unreadAnswer reports whether the last call in a folder has ended with output that is not stored, as after a full disk.
// What the folder holds is that answer, which the next delivery of the call reads.
func unreadAnswer(ctx context.Context, s *store.Store, w *workspace.Folder) (bool, error) {
	h := w.Holder()
	if h == nil || !h.Keeps {
		return false, nil
	}
	if exit, err := supervisor.ReadExit(h.Dir); err != nil || exit.Killed {
		return false, nil //nolint:nilerr // it has no answer
	}
	l := calls.Ledger{Store: s, Call: h.Call}
	number, err := strconv.Atoi(filepath.Base(h.Dir))
	if err != nil {
		return false, nil // no delivery
	}
	if ended, err := l.Ended(ctx, number); ended || err != nil {
		return false, err
	}
	ans, err := l.Result(ctx)
	return ans == nil && err == nil, err
}

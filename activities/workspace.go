package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/layout"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/repo"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// workspaceCopy is the copy of the workspace for one delivery.
type workspaceCopy struct {
	of    contract.Tree
	rules tree.Rules
	cache *tree.Cache
	keep  bool // the agent's changes are its result
}

// workspaceCopyOf returns the workspace copy for a call, or nil if the run has no workspace.
func workspaceCopyOf(plan *pipeline.Plan, role pipeline.Role, in contract.PassInput) *workspaceCopy {
	if in.Tree == nil {
		return nil
	}
	return &workspaceCopy{of: *in.Tree, rules: workspace.RulesOf(plan), keep: role.Gives == pipeline.GivesChanges}
}

// checkoutWorkspace checks out the workspace in the agent's folder. A git workspace becomes a separate repository that
// shares only objects with the source, so git commands there are harmless.
func (a *Activities) checkoutWorkspace(ctx context.Context, st *runningCall, dir string) error {
	free, err := a.slots.checkouts.acquire(ctx)
	if err != nil {
		return fmt.Errorf("check out the workspace: %w", err)
	}
	defer free()
	c := st.tree
	cache, err := tree.Checkout(ctx, st.l.Store, store.Digest(c.of.Tree.Digest), dir, c.rules)
	if err != nil {
		return fmt.Errorf("check out the workspace: %w", err)
	}
	c.cache = cache
	if c.of.Workspace.Kind != run.WorkspaceGit {
		return nil
	}
	st.objects, err = repo.Scratch(ctx, dir, c.of.Workspace.Source, c.of.Commit)
	if errors.Is(err, fs.ErrNotExist) { // a host without the repository: only the files are available
		return nil
	}
	return err
}

// findObjects finds the objects that the repository of a continued session shares. Its own record of them is written by
// the agent.
func (st *runningCall) findObjects(ctx context.Context) (err error) {
	if st.tree == nil || st.tree.of.Workspace.Kind != run.WorkspaceGit {
		return nil
	}
	st.objects, err = repo.Objects(ctx, st.tree.of.Workspace.Source)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// storeWorkspace stores the agent's workspace. One that can never be stored is an answer too: it was paid for.
func (a *Activities) storeWorkspace(ctx context.Context, st *runningCall, ans *calls.Answer) error {
	c := st.tree
	if c == nil || !c.keep {
		return nil
	}
	problem, err := checkWorkDir(st.work)
	if errors.Is(err, fs.ErrNotExist) {
		problem, err = "the working directory was removed", nil
	}
	if ans.TreeError = problem; problem != "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("store the workspace: %w", err)
	}
	if err := removePipes(st.work); err != nil && !tree.Passing(err) {
		ans.TreeError = err.Error()
		return nil
	} else if err != nil {
		return fmt.Errorf("store the workspace: %w", err)
	}
	free, err := a.slots.checkouts.acquire(ctx)
	if err != nil {
		return fmt.Errorf("store the workspace: %w", err)
	}
	defer free()
	rules := c.rules
	rules.Limits = workspace.Limits(st.limits.Tree)
	saved, err := workspace.Save(ctx, st.l.Store, st.work, workspace.Current(c.of), rules,
		c.cache)
	if wrong := (*tree.FolderError)(nil); errors.As(err, &wrong) {
		ans.TreeError = wrong.Error()
		return nil
	}
	if err != nil {
		return fmt.Errorf("store the workspace: %w", err)
	}
	b := workspace.Blob(saved)
	ans.Tree = &b
	ans.Skipped, ans.SkippedCount = workspace.Skipped(saved)
	return nil
}

// maxInlineFiles is the maximum number of changed files listed in an event.
const maxInlineFiles = 20

// changes returns what an agent changed in the workspace, or nil. Protected files are restored.
func (j evaluation) changes(left guarded) (*run.WorkspaceUpdated, error) {
	if left.tree == nil || left.tree.Digest == j.in.Tree.Tree.Digest {
		return nil, nil
	}
	ev, err := compareTrees(j.ctx, j.s, j.in.Tree.Tree, *left.tree)
	if err != nil {
		return nil, err
	}
	ev.Skipped, ev.SkippedCount = j.ans.Skipped, j.ans.SkippedCount
	return ev, nil
}

// compareTrees compares two stored trees.
func compareTrees(ctx context.Context, s *store.Store, from, to run.Blob) (*run.WorkspaceUpdated, error) {
	before, err := tree.Load(ctx, s, store.Digest(from.Digest))
	if err != nil {
		return nil, err
	}
	after, err := tree.Load(ctx, s, store.Digest(to.Digest))
	if err != nil {
		return nil, err
	}
	ev := &run.WorkspaceUpdated{Tree: to}
	for _, c := range tree.Diff(before, after) {
		ev.Files = append(ev.Files, fileChange(c))
	}
	ev.Changed = len(ev.Files)
	if ev.Changed <= maxInlineFiles {
		return ev, nil
	}
	raw, err := json.Marshal(ev.Files)
	if err != nil {
		return nil, err
	}
	list, err := blobs.Put(ctx, s, raw)
	ev.Files, ev.List = ev.Files[:maxInlineFiles], &list
	return ev, err
}

// SyncWorkspace updates the run's checkout to a tree, and commits it in a git checkout. Repeating it changes nothing.
func (a *Activities) SyncWorkspace(ctx context.Context,
	in contract.SyncWorkspaceInput) (contract.SyncWorkspaceResult, error) {
	d := a.open(in.Dir)
	if err := recordSync(d, in.Tree.Tree.Digest); err != nil {
		return contract.SyncWorkspaceResult{}, err
	}
	res, err := a.syncWorkspace(ctx, in)
	if err == nil {
		err = recordContent(d, in.Tree.Tree.Digest)
	}
	if err != nil || in.DiffFrom == nil {
		return res, err
	}
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return res, err
	}
	res.Changes, err = compareTrees(ctx, s, *in.DiffFrom, in.Tree.Tree)
	return res, err
}

func (a *Activities) syncWorkspace(ctx context.Context,
	in contract.SyncWorkspaceInput) (contract.SyncWorkspaceResult, error) {
	defer a.keepAlive(ctx)()
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.SyncWorkspaceResult{}, err
	}
	plan, err := a.plan(ctx, s, in.Tree.Plan)
	if err != nil {
		return contract.SyncWorkspaceResult{}, err
	}
	dir := a.open(in.Dir).Path(layout.WorkspaceDir)
	if in.Tree.Workspace.Kind != run.WorkspaceGit {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return contract.SyncWorkspaceResult{}, err
		}
		return a.checkoutOver(ctx, s, in, dir, workspace.RulesOf(plan))
	}
	w, err := openCheckout(ctx, in.Tree, dir)
	if err != nil {
		return contract.SyncWorkspaceResult{}, err
	}
	rules, err := workspace.WithGit(ctx, workspace.RulesOf(plan), workspace.Current(in.Tree), dir)
	if err != nil {
		return contract.SyncWorkspaceResult{}, err
	}
	res, err := a.checkoutOver(ctx, s, in, dir, rules)
	if err != nil {
		return contract.SyncWorkspaceResult{}, err
	}
	if err := commitTree(ctx, s, w, in); err != nil {
		return contract.SyncWorkspaceResult{}, err
	}
	res.Commit, _, err = w.Head(ctx)
	return res, err
}

// checkoutOver checks out the tree over the existing files. A file that no pass created is an operator's: it is moved
// aside and reported.
func (a *Activities) checkoutOver(ctx context.Context, s *store.Store, in contract.SyncWorkspaceInput, dir string,
	rules tree.Rules) (contract.SyncWorkspaceResult, error) {
	if in.Previous == nil {
		_, err := tree.Checkout(ctx, s, store.Digest(in.Tree.Tree.Digest), dir, rules)
		return contract.SyncWorkspaceResult{}, err
	}
	was, err := tree.Load(ctx, s, store.Digest(in.Previous.Digest))
	if err != nil {
		return contract.SyncWorkspaceResult{}, err
	}
	ours := map[string]bool{}
	for _, e := range was.Entries {
		ours[e.Path] = true
	}
	d := a.open(in.Dir)
	var moved []string
	_, err = tree.CheckoutOver(ctx, s, store.Digest(in.Tree.Tree.Digest), dir, rules, func(path string) (bool, error) {
		if ours[path] {
			return false, nil
		}
		to, err := d.KeepFile(filepath.Join(dir, path), path)
		moved = append(moved, path+" (now "+to+")")
		return true, err
	})
	if err != nil || len(moved) == 0 {
		return contract.SyncWorkspaceResult{}, err
	}
	slices.Sort(moved)
	return contract.SyncWorkspaceResult{Recovered: []contract.RecoveredError{{
		Category: run.CategoryFileIO,
		Message: fmt.Sprintf(
			"moved %s that no pass created out of the workspace of the active run: %s; pause the run before you "+
				"change its workspace", run.Plural(len(moved), "file"), firstNames(moved),
		),
	}}}, nil
}

func firstNames(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// commitTree commits the changes of the tree and its untracked files, which git would not list if ignored. Other
// files in the checkout, such as secrets and build output, are not committed.
func commitTree(ctx context.Context, s *store.Store, w *repo.Worktree, in contract.SyncWorkspaceInput) error {
	changes, err := w.Changes(ctx, "HEAD")
	if err != nil {
		return err
	}
	t, err := tree.Load(ctx, s, store.Digest(in.Tree.Tree.Digest))
	if err != nil {
		return err
	}
	tracked, err := w.Tracked(ctx, "HEAD")
	if err != nil {
		return err
	}
	held := map[string]bool{}
	for _, e := range t.Entries {
		held[e.Path] = true
	}
	paths := slices.DeleteFunc(repo.Paths(changes), func(p string) bool {
		_, err := os.Lstat(filepath.Join(w.Root(), p))
		return err == nil && !held[p]
	})
	for _, p := range tracked {
		delete(held, p)
	}
	for _, e := range t.Entries {
		if held[e.Path] && e.Mode != tree.ModeFolder {
			paths = append(paths, e.Path)
		}
	}
	_, err = w.Commit(ctx, in.Message, paths...)
	return err
}

// openCheckout opens the run's checkout, and recreates it if it is missing. Its branch may be ahead of the journal
// after a crash.
func openCheckout(ctx context.Context, t contract.Tree, dir string) (*repo.Worktree, error) {
	w, source, err := existingCheckout(ctx, t, dir)
	if source == nil || err == nil || !errors.Is(err, fs.ErrNotExist) {
		return w, err
	}
	at := t.Commit
	if at == "" {
		at = t.Workspace.Base
	}
	w, err = source.AddWorktree(ctx, dir, t.Workspace.Branch, at)
	if taken := (*repo.BranchError)(nil); errors.As(err, &taken) && taken.Path == "" {
		return source.AddWorktree(ctx, dir, t.Workspace.Branch, taken.At)
	}
	return w, err
}

// existingCheckout opens the run's checkout, which must be one of the run's source: an agent may have replaced its
// .git. source is nil if the repository is not at its recorded place; then the checkout finds it.
func existingCheckout(ctx context.Context, t contract.Tree, dir string) (
	w *repo.Worktree, source *repo.Repo, err error,
) {
	source, err = repo.Open(ctx, t.Workspace.Source)
	if errors.Is(err, fs.ErrNotExist) {
		w, werr := repo.OpenWorktree(ctx, dir)
		switch {
		case errors.Is(werr, fs.ErrNotExist):
			werr = err // the source is what is missing
		case werr == nil && len(w.Suppressed()) > 0:
			werr = badInput("the source %s no longer exists, and the repository that %s leads to now has filters (%s), "+
				"which are not executed: restore the source, then resume the run", t.Workspace.Source,
				filepath.Join(dir, ".git"), strings.Join(w.Suppressed(), ", "))
		}
		return w, nil, werr
	}
	if err == nil {
		w, err = source.Worktree(ctx, dir)
	}
	return w, source, err
}

// stepTrailer is in every commit of a pass.
const stepTrailer = "Passbook-Step: "

// resetUnjournaled resets the checkout to the journal's commit, if all later commits are of passes that were not
// journaled: the workflow ended in between and will repeat the pass.
func resetUnjournaled(ctx context.Context, t *contract.Tree, dir string) (bool, error) {
	if t.Workspace.Kind != run.WorkspaceGit || t.Commit == "" {
		return false, nil
	}
	w, _, err := existingCheckout(ctx, *t, dir)
	if err != nil {
		return false, err
	}
	since, err := w.MessagesSince(ctx, t.Commit)
	if err != nil || len(since) == 0 ||
		slices.ContainsFunc(since, func(m string) bool { return !strings.Contains(m, "\n"+stepTrailer) }) {
		return false, err
	}
	if changes, err := w.Changes(ctx, "HEAD"); err != nil || len(changes) > 0 {
		return false, err
	}
	return true, w.Reset(ctx, t.Commit)
}

// inspectTree compares the run's checkout with the tree in the journal, and takes over edits made while the run
// was paused. What calls put there and the journal does not have, or has abandoned, is not an edit: it is taken out.
func (a *Activities) inspectTree(ctx context.Context, in contract.InspectInput) (contract.InspectResult, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.InspectResult{}, err
	}
	plan, err := a.plan(ctx, s, in.Tree.Plan)
	if err != nil {
		return contract.InspectResult{}, err
	}
	dir := a.open(in.Dir).Path(layout.WorkspaceDir)
	carry := contract.SyncWorkspaceInput{Target: in.Target, Tree: *in.Tree, Message: "Restore the workspace\n"}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		_, err := a.SyncWorkspace(ctx, carry)
		return contract.InspectResult{Restored: true}, err
	}
	saved, err := workspace.Save(ctx, s, dir, workspace.Current(*in.Tree), workspace.RulesOf(plan), nil)
	if err != nil || string(saved.Digest) == in.Tree.Tree.Digest {
		return contract.InspectResult{}, err
	}
	back, err := resetUnjournaled(ctx, in.Tree, dir)
	if err != nil {
		return contract.InspectResult{}, err
	}
	edited, err := a.withEdits(ctx, s, in, saved.Tree)
	if err != nil {
		return contract.InspectResult{}, err
	}
	if back || edited.Digest == in.Tree.Tree.Digest { // git knows no modes but that of executables
		_, err := a.SyncWorkspace(ctx, carry)
		return contract.InspectResult{Restored: true}, err
	}
	ev, err := compareTrees(ctx, s, in.Tree.Tree, edited)
	if err != nil {
		return contract.InspectResult{}, err
	}
	ev.Cause = "edited"
	ev.Skipped, ev.SkippedCount = workspace.Skipped(saved)
	carry.Tree.Tree, carry.Message = ev.Tree, fmt.Sprintf("Record manual changes\n\nPassbook-Run: %s\n", in.RunID)
	out, err := a.syncWorkspace(ctx, carry)
	if err == nil {
		err = recordEdits(a.open(in.Dir), ev.Tree.Digest)
	}
	ev.Commit = out.Commit
	return contract.InspectResult{Workspace: ev}, err
}

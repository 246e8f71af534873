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

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/repo"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/store/tree"
	"github.com/passbook-run/passbook/work"
)

// copied is the copy of the workspace that one delivery of a call works on.
type copied struct {
	of    work.Tree
	rules tree.Rules
	cache *tree.Cache
	keep  bool // what the agent leaves there is its result
}

// treeOf says which copy a call works on; nil: the run has no workspace.
func treeOf(plan *pipeline.Plan, role pipeline.Role, in work.PassInput) *copied {
	if in.Tree == nil {
		return nil
	}
	return &copied{of: *in.Tree, rules: rulesOf(plan), keep: role.Gives == pipeline.GivesChanges}
}

func rulesOf(plan *pipeline.Plan) tree.Rules {
	if plan.Workspace == nil {
		return tree.Rules{}
	}
	return Rules(*plan.Workspace)
}

// Rules are what of a workspace belongs to its tree.
func Rules(w pipeline.Workspace) tree.Rules {
	return tree.Rules{Ignore: w.Ignore, IncludeSecrets: w.Secrets == "keep", SkipOutside: true}
}

// withGit adds what git knows of the files at dir. What it ignores is left out: a build's leftovers are no part of the work. A file that is tracked
// where the workspace stands, or in the index at dir, is not ignored, and one that is tracked where the run comes from is no secret. A host without
// the repository knows nothing.
func withGit(ctx context.Context, rules tree.Rules, of run.Workspace, dir string) (tree.Rules, error) {
	if of.Kind != "git" {
		return rules, nil
	}
	source, err := repo.Open(ctx, of.Source)
	if errors.Is(err, fs.ErrNotExist) {
		return rules, nil
	}
	if err != nil {
		return rules, err
	}
	if rules.Paths, err = source.Ignored(ctx, dir, standing(of)); err != nil {
		return rules, err
	}
	origin, err := source.Origin(ctx, of.Base)
	if err != nil {
		return rules, err
	}
	rules.Tracked, err = source.Tracked(ctx, origin)
	return rules, err
}

// standing is the commit that a workspace is at.
func standing(of run.Workspace) string {
	if of.Commit != "" {
		return of.Commit
	}
	return of.Base
}

// workspaceOf is the workspace as it stands now.
func workspaceOf(t work.Tree) run.Workspace {
	of := t.Workspace
	of.Tree = t.Tree
	if t.Commit != "" {
		of.Commit = t.Commit
	}
	return of
}

// SaveTree puts the files below dir into the store. What the workspace's tree holds already is no secret.
func SaveTree(ctx context.Context, s *store.Store, dir string, of run.Workspace, rules tree.Rules, cache *tree.Cache) (tree.Saved, error) {
	rules, err := withGit(ctx, rules, of, dir)
	if err != nil {
		return tree.Saved{}, err
	}
	if of.Tree.Digest != "" {
		known, err := tree.Load(ctx, s, store.Digest(of.Tree.Digest))
		if err != nil {
			return tree.Saved{}, err
		}
		for _, e := range known.Entries {
			if e.Mode != tree.ModeFolder {
				rules.Tracked = append(rules.Tracked, e.Path)
			}
		}
	}
	return tree.Save(ctx, s, dir, rules, cache)
}

// layOutTree lays the workspace down in the agent's folder. Of a git workspace it is a repository of its own, which shares only objects with the
// source: whatever the agent does with git there hurts nobody.
func (a *Activities) layOutTree(ctx context.Context, st *settlement, dir string) error {
	free, err := a.kinds.checkouts.take(ctx)
	if err != nil {
		return fmt.Errorf("lay out the workspace: %w", err)
	}
	defer free()
	c := st.tree
	cache, err := tree.Checkout(ctx, st.l.s, store.Digest(c.of.Tree.Digest), dir, c.rules)
	if err != nil {
		return fmt.Errorf("lay out the workspace: %w", err)
	}
	c.cache = cache
	if c.of.Workspace.Kind != "git" {
		return nil
	}
	err = repo.Scratch(ctx, dir, c.of.Workspace.Source, c.of.Commit)
	if errors.Is(err, fs.ErrNotExist) { // a host without the repository: the files are all there is
		return nil
	}
	return err
}

// takeTree stores what the agent left. What can never be stored is an answer too: it was paid for.
func (a *Activities) takeTree(ctx context.Context, st *settlement, ans *answer) error {
	c := st.tree
	if c == nil || !c.keep {
		return nil
	}
	odd, err := workingDir(st.dir)
	if errors.Is(err, fs.ErrNotExist) {
		odd, err = "the working directory was removed", nil
	}
	if ans.TreeError = odd; odd != "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("store the workspace: %w", err)
	}
	if err := clearPipes(filepath.Join(st.dir, workDir)); err != nil && !tree.Passing(err) {
		ans.TreeError = err.Error()
		return nil
	} else if err != nil {
		return fmt.Errorf("store the workspace: %w", err)
	}
	free, err := a.kinds.checkouts.take(ctx)
	if err != nil {
		return fmt.Errorf("store the workspace: %w", err)
	}
	defer free()
	saved, err := SaveTree(ctx, st.l.s, filepath.Join(st.dir, workDir), workspaceOf(c.of), c.rules, c.cache)
	if wrong := (*tree.FolderError)(nil); errors.As(err, &wrong) {
		ans.TreeError = wrong.Error()
		return nil
	}
	if err != nil {
		return fmt.Errorf("store the workspace: %w", err)
	}
	b := BlobOf(saved)
	ans.Tree = &b
	ans.Skipped, ans.SkippedCount = skippedOf(saved)
	return nil
}

// BlobOf is a tree as events name it: its digest, and the bytes of all its files.
func BlobOf(saved tree.Saved) run.Blob {
	b := run.Blob{Digest: string(saved.Digest)}
	for _, e := range saved.Tree.Entries {
		b.Size += e.Size
	}
	return b
}

// inlineFiles is how many changed files an event names itself.
const inlineFiles = 20

// changes says what an agent did to the workspace; nil: nothing, or it was not asked to.
func (j judge) changes() (*run.WorkspaceUpdated, error) {
	if j.role.Gives != pipeline.GivesChanges || j.ans.Tree == nil || j.in.Tree == nil || j.ans.Tree.Digest == j.in.Tree.Tree.Digest {
		return nil, nil
	}
	ev, err := updated(j.ctx, j.s, j.in.Tree.Tree, *j.ans.Tree)
	if err != nil {
		return nil, err
	}
	ev.Skipped, ev.SkippedCount = j.ans.Skipped, j.ans.SkippedCount
	return ev, nil
}

// updated compares two stored trees.
func updated(ctx context.Context, s *store.Store, from, to run.Blob) (*run.WorkspaceUpdated, error) {
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
		ev.Files = append(ev.Files, run.FileChange{
			Path: strings.ToValidUTF8(c.Path, "�"), Old: strings.ToValidUTF8(c.From, "�"), Kind: string(c.Kind),
			Before: string(c.Before.Digest), After: string(c.After.Digest),
		})
	}
	ev.Changed = len(ev.Files)
	if ev.Changed <= inlineFiles {
		return ev, nil
	}
	raw, err := json.Marshal(ev.Files)
	if err != nil {
		return nil, err
	}
	list, err := keepData(ctx, s, raw)
	ev.Files, ev.List = ev.Files[:inlineFiles], &list
	return ev, err
}

// Carry brings the run's own checkout to a tree, and commits it there where it is a git checkout. Doing it again changes nothing.
func (a *Activities) Carry(ctx context.Context, in work.CarryInput) (work.CarryResult, error) {
	res, err := a.carry(ctx, in)
	if err != nil || in.From == nil {
		return res, err
	}
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return res, err
	}
	res.Changes, err = updated(ctx, s, *in.From, in.Tree.Tree)
	return res, err
}

func (a *Activities) carry(ctx context.Context, in work.CarryInput) (work.CarryResult, error) {
	defer a.alive(ctx)()
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return work.CarryResult{}, err
	}
	plan, err := a.plan(ctx, s, in.Tree.Plan)
	if err != nil {
		return work.CarryResult{}, err
	}
	dir := a.cfg.Open(in.Dir).Path(rundir.WorkspaceDir)
	if in.Tree.Workspace.Kind != "git" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return work.CarryResult{}, err
		}
		return a.carryOver(ctx, s, in, dir, rulesOf(plan))
	}
	w, err := checkoutOf(ctx, in.Tree, dir)
	if err != nil {
		return work.CarryResult{}, err
	}
	rules, err := withGit(ctx, rulesOf(plan), workspaceOf(in.Tree), dir)
	if err != nil {
		return work.CarryResult{}, err
	}
	res, err := a.carryOver(ctx, s, in, dir, rules)
	if err != nil {
		return work.CarryResult{}, err
	}
	if err := commitTree(ctx, s, w, in); err != nil {
		return work.CarryResult{}, err
	}
	res.Commit, _, err = w.Head(ctx)
	return res, err
}

// carryOver lays the tree down over what is there. A file that no pass has made was put there by an operator while the run was at work: it is moved to a
// folder beside, and named.
func (a *Activities) carryOver(ctx context.Context, s *store.Store, in work.CarryInput, dir string, rules tree.Rules) (work.CarryResult, error) {
	if in.Was == nil {
		_, err := tree.Checkout(ctx, s, store.Digest(in.Tree.Tree.Digest), dir, rules)
		return work.CarryResult{}, err
	}
	was, err := tree.Load(ctx, s, store.Digest(in.Was.Digest))
	if err != nil {
		return work.CarryResult{}, err
	}
	ours := map[string]bool{}
	for _, e := range was.Entries {
		ours[e.Path] = true
	}
	d := a.cfg.Open(in.Dir)
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
		return work.CarryResult{}, err
	}
	slices.Sort(moved)
	return work.CarryResult{Troubles: []work.Trouble{{
		Category: string(agent.FileIO),
		Message:  fmt.Sprintf("%d files that no pass has made were in the workspace while the run was at work; they were moved: %s. Pause the run before you change its workspace", len(moved), few(moved)),
	}}}, nil
}

// few names the first ones.
func few(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// commitTree commits what the tree has changed, and every file of it that is not tracked: git would not name one that it ignores. What else lies in
// the checkout, such as secrets and a build's leftovers, is no part of it.
func commitTree(ctx context.Context, s *store.Store, w *repo.Worktree, in work.CarryInput) error {
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

// checkoutOf opens the run's own checkout, and makes it again where it is gone. Its branch may be further than the run knows: whoever moved it
// there did not come to tell.
func checkoutOf(ctx context.Context, t work.Tree, dir string) (*repo.Worktree, error) {
	w, err := repo.OpenWorktree(ctx, dir)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return w, err
	}
	source, err := repo.Open(ctx, t.Workspace.Source)
	if err != nil {
		return nil, err
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

// stepTrailer is in the message of every commit that carries what a pass left.
const stepTrailer = "Passbook-Step: "

// takeBack brings the run's own checkout back to the commit that the run knows, where all that came since is what a pass left and the journal was
// never told of: its workflow was ended in between, and will do that pass again.
func takeBack(ctx context.Context, t *work.Tree, dir string) (bool, error) {
	if t.Workspace.Kind != "git" || t.Commit == "" {
		return false, nil
	}
	w, err := repo.OpenWorktree(ctx, dir)
	if err != nil {
		return false, err
	}
	since, err := w.MessagesSince(ctx, t.Commit)
	if err != nil || len(since) == 0 || slices.ContainsFunc(since, func(m string) bool { return !strings.Contains(m, "\n"+stepTrailer) }) {
		return false, err
	}
	if changes, err := w.Changes(ctx, "HEAD"); err != nil || len(changes) > 0 {
		return false, err
	}
	return true, w.Reset(ctx, t.Commit)
}

// inspectTree compares the run's own checkout with the tree that the run knows. What somebody changed there while the run rested is taken over.
func (a *Activities) inspectTree(ctx context.Context, in work.InspectInput) (work.InspectResult, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return work.InspectResult{}, err
	}
	plan, err := a.plan(ctx, s, in.Tree.Plan)
	if err != nil {
		return work.InspectResult{}, err
	}
	dir := a.cfg.Open(in.Dir).Path(rundir.WorkspaceDir)
	carry := work.CarryInput{Target: in.Target, Tree: *in.Tree, Message: "The workspace as the run knows it\n"}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		_, err := a.Carry(ctx, carry)
		return work.InspectResult{Restored: true}, err
	}
	saved, err := SaveTree(ctx, s, dir, workspaceOf(*in.Tree), rulesOf(plan), nil)
	if err != nil || string(saved.Digest) == in.Tree.Tree.Digest {
		return work.InspectResult{}, err
	}
	if back, err := takeBack(ctx, in.Tree, dir); err != nil || back {
		return work.InspectResult{Restored: back}, err
	}
	ev, err := updated(ctx, s, in.Tree.Tree, BlobOf(saved))
	if err != nil {
		return work.InspectResult{}, err
	}
	ev.Cause = "edited"
	ev.Skipped, ev.SkippedCount = skippedOf(saved)
	carry.Tree.Tree, carry.Message = ev.Tree, fmt.Sprintf("Changes made by hand\n\nPassbook-Run: %s\n", in.RunID)
	out, err := a.Carry(ctx, carry)
	ev.Commit = out.Commit
	return work.InspectResult{Workspace: ev}, err
}

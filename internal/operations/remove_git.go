package operations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
)

// workspaceParts returns the folders in which the calls of the run worked. One with changes that the run did not make
// stays.
func (o Operator) workspaceParts(ctx context.Context, p *Removable, r Removal, s removed, _ []removed) error {
	folders := workspace.In(o.Settings.StateDir)
	all, err := folders.Of(p.RunID)
	if err != nil {
		return err
	}
	for _, dir := range all {
		changed, err := o.changedIn(ctx, folders, dir, s)
		switch {
		case r.Discard:
		case err != nil && ctx.Err() == nil:
			p.refuse("the changes in its workspace %s are not known: %v. Copy what you need of it and remove the run with "+
				"--discard", dir, err)
		case len(changed) > 0:
			p.refuse("its workspace %s has changes that the run did not make (%s). To keep them, copy these files; to lose "+
				"them: --discard", dir, few(changed))
		}
		p.part("workspace", dir, Amount{}, "", func(ctx context.Context) error {
			w, err := folders.Lock(ctx, dir)
			if err != nil {
				return err
			}
			return w.Remove()
		})
	}
	return ctx.Err()
}

// changedIn returns the files in a workspace that the run has not left there.
func (o Operator) changedIn(ctx context.Context, folders *workspace.Folders, dir string, s removed) (paths []string,
	err error) {
	st, err := OpenStore(ctx, s.store)
	if err != nil {
		return nil, err
	}
	rules, of := tree.Rules{SkipOutside: true, Portable: true}, run.Workspace{}
	if plan, err := s.dir.Plan(); s.there && err == nil {
		rules = workspace.RulesOf(&plan)
	}
	if s.work != nil {
		of = *s.work
	}
	if of.Tree = (run.Blob{}); s.state.Tree != nil {
		of.Tree = *s.state.Tree
	}
	w, err := folders.Lock(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Unlock()) }()
	if rules, err = folders.WithGit(ctx, st, rules, of); err != nil {
		return nil, err
	}
	return w.Changed(ctx, st, rules)
}

// gitRemoval is what is removed from the source repository of a run.
type gitRemoval struct {
	p      *Removable
	r      Removal
	s      removed
	source *git.Repo
}

// gitParts returns the run's branch, if it works on a git repository. What cannot be checked stays, and is listed.
func (o Operator) gitParts(ctx context.Context, p *Removable, r Removal, s removed, all []removed) error {
	if s.work == nil || s.work.Kind != run.WorkspaceGit {
		return nil
	}
	g := gitRemoval{p: p, r: r, s: s}
	var err error
	if g.source, err = git.OpenRefs(ctx, s.work.Source); err == nil {
		err = g.branches(ctx, all)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the repository %s is not found", s.work.Source)
	}
	if err != nil && ctx.Err() == nil {
		p.keep("branch %s: %v", s.work.Branch, err)
		return nil
	}
	return err
}

// branches handles the branch of the run. That of an interrupted start is found by the run's id.
func (g *gitRemoval) branches(ctx context.Context, all []removed) error {
	own, err := g.source.RunBranches(ctx, g.p.RunID)
	if err != nil {
		return err
	}
	if len(own) == 0 && g.s.work.Branch != "" {
		own = []git.Branch{{Name: g.s.work.Branch}}
	}
	var besides []string
	for _, other := range all {
		if other.work != nil && other.work.Branch != "" {
			besides = append(besides, other.work.Branch)
		}
	}
	for _, b := range own {
		if err := g.branch(ctx, b.Name, besides); err != nil {
			return err
		}
	}
	return nil
}

// branch adds a branch to the parts, unless it stays.
func (g *gitRemoval) branch(ctx context.Context, branch string, besides []string) error {
	own, err := g.source.OwnWork(ctx, branch, besides...)
	if err != nil || own.At == "" {
		return err
	}
	where := branch + " in " + g.source.Root()
	if g.r.KeepBranch {
		g.p.keep("branch %s, at %.12s (--keep-branch)", where, own.At)
		return nil
	}
	out, err := g.source.Checkouts(ctx, branch)
	if err != nil {
		return err
	}
	if len(out) > 0 {
		g.p.refuse("its branch %s is checked out at %s: switch to another branch there, or keep it: --keep-branch", branch,
			out[0])
	}
	delivered := g.delivered(ctx, own, besides)
	note := "all its commits are also on another branch or tag"
	if n := len(own.Only); n > 0 {
		note = counted(n, "commit") + " on no other branch or tag" + delivered
	}
	if len(own.Only) > 0 && delivered == "" && !g.r.Discard {
		g.p.refuse("its branch %s has commits that nothing else leads to (%s). To keep them, merge them (%s) or use "+
			"--keep-branch; to lose them: --discard",
			branch, few(own.Only), shell.Line("git", "-C", g.source.Root(), "merge", branch))
	}
	g.p.part("branch", where, Amount{}, note,
		func(ctx context.Context) error { return g.source.RemoveBranch(ctx, branch, own.At) })
	return nil
}

// delivered reports whether all commits of the branch were delivered as a commit that still exists; empty: they were
// not, or not as a commit, because files in a checkout may have been changed or reset since.
func (g *gitRemoval) delivered(ctx context.Context, own git.BranchContent, besides []string) string {
	d := g.s.state.Delivery
	if d == nil || !d.Delivered || g.s.state.Commit != own.At || d.Commit == "" ||
		!g.source.Contains(ctx, d.Commit, besides...) {
		return ""
	}
	return fmt.Sprintf("; their changes were delivered to the %s %s", d.To, d.Target)
}

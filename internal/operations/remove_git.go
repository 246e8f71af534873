package operations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/passbook-run/passbook/internal/layout"

	"github.com/passbook-run/passbook/internal/repo"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// gitRemoval is what is removed from the source repository of a run.
type gitRemoval struct {
	p        *Removable
	r        Removal
	s        removed
	source   *repo.Repo // nil: it cannot be opened
	branch   string
	checkout string
}

// gitParts returns the run's checkout and branch, if it works on a git repository. What cannot be checked stays, and
// is listed.
func (o Operator) gitParts(ctx context.Context, p *Removable, r Removal, s removed, all []removed) error {
	if s.work == nil || s.work.Kind != run.WorkspaceGit {
		return nil
	}
	g := gitRemoval{p: p, r: r, s: s, branch: s.work.Branch, checkout: s.dir.Path(layout.WorkspaceDir)}
	if g.branch == "" {
		g.branch = repo.BranchPrefix + p.RunID
	}
	var besides []string
	for _, other := range all {
		besides = append(besides, repo.BranchPrefix+other.claim.RunID)
	}
	err := g.open(ctx)
	if err == nil {
		err = g.checkouts(ctx)
	}
	if err == nil {
		err = g.ofBranch(ctx, besides)
	}
	if err != nil && ctx.Err() == nil {
		g.unusable(err)
		return nil
	}
	return err
}

// open finds the repository: through the checkout, since it may have been moved, or at its recorded place.
func (g *gitRemoval) open(ctx context.Context) (err error) {
	source := g.s.work.Source
	if moved, err := repo.SourceOf(ctx, g.checkout); err == nil {
		source = moved
	}
	g.source, err = repo.OpenRefs(ctx, source)
	return err
}

// unusable handles a repository that git cannot read: the content of the checkout cannot be compared.
func (g *gitRemoval) unusable(err error) {
	why := err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		why = fmt.Sprintf("the repository %s is not found", g.s.work.Source)
	}
	g.p.keep("branch %s: %s", g.branch, why)
	if _, err := os.Lstat(g.checkout); err == nil && !g.r.Discard {
		g.p.refuse("the changes in its checkout %s are not known: %s. Restore the repository; or copy what you need "+
			"of the checkout and remove the run with --discard", g.checkout, why)
	}
}

// checkouts finds where the branch is checked out: in the run's directory, or its former place.
func (g *gitRemoval) checkouts(ctx context.Context) error {
	registered, err := g.source.Checkouts(ctx, g.branch)
	if err != nil {
		return err
	}
	mine := false
	for _, path := range registered {
		_, err := os.Lstat(path)
		gone := errors.Is(err, fs.ErrNotExist)
		own := samePath(path, g.checkout)
		mine = mine || own || gone
		if !own && !gone {
			if !g.r.KeepBranch {
				g.p.refuse("its branch %s is checked out at %s: switch to another branch there, or keep it: "+
					"--keep-branch",
					g.branch, path)
			}
			continue
		}
		note := "git worktree of " + g.source.Root()
		if gone {
			note += "; its folder is gone"
		}
		g.p.part("checkout", path, Amount{}, note,
			func(ctx context.Context) error { return g.removeCheckout(ctx, path) })
	}
	return g.own(ctx, mine)
}

// own checks the checkout in the run's directory. mine: git has registered it with the run's branch.
func (g *gitRemoval) own(ctx context.Context, mine bool) error {
	paths, lost, err := g.unsaved(ctx, g.checkout)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, repo.ErrNotOwned):
		if !g.r.Discard {
			g.p.refuse("%v: restore what the run had there, or remove it", err)
		}
		return nil
	case err != nil && lost:
		if !g.r.Discard {
			g.p.refuse("the changes in its checkout are not known: %v. Copy what you need of it and remove the run "+
				"with --discard", err)
		}
		return nil
	case err != nil:
		return err
	case mine || lost: // one that is lost goes with the directory
	case !g.r.Discard:
		g.p.refuse("its checkout %s has another branch or commit checked out: %s. Or remove the checkout as it is: "+
			"--discard", g.checkout, shell.Line("git", "-C", g.checkout, "switch", g.branch))
	default:
		g.p.part("checkout", g.checkout, Amount{},
			"git worktree of "+g.source.Root()+"; it has another branch or commit checked out",
			func(ctx context.Context) error { return g.source.DiscardWorktree(ctx, g.checkout) })
	}
	if len(paths) > 0 && !g.r.Discard {
		g.p.Problems = append(g.p.Problems,
			&RefusedError{Verb: removeVerb, Why: "its checkout " + g.unsavedIn(g.checkout, paths, lost)})
	}
	return nil
}

func (g *gitRemoval) unsavedIn(path string, paths []string, lost bool) string {
	if lost {
		return fmt.Sprintf("%s has changes that are in no commit (%s). To keep them, copy these files; to lose "+
			"them: --discard", path, few(paths))
	}
	return fmt.Sprintf("%s has changes that are in no commit (%s). To keep them, commit them there and use "+
		"--keep-branch; to lose them: --discard", path, few(paths))
}

// unsaved lists the files of a checkout that are in no commit. lost: git has no record of it, so it is compared with
// the branch.
func (g *gitRemoval) unsaved(ctx context.Context, path string) (paths []string, lost bool, err error) {
	dirt, err := repo.WorktreeDirt(ctx, path)
	if !errors.Is(err, repo.ErrLost) {
		return dirt.Unsaved(path), false, err
	}
	paths, uerr := g.source.Unsaved(ctx, path, g.branch)
	if uerr != nil {
		return nil, true, errors.Join(err, uerr)
	}
	return paths, true, nil
}

// removeCheckout removes a checkout without changes, even since it was listed.
func (g *gitRemoval) removeCheckout(ctx context.Context, path string) error {
	paths, lost, err := g.unsaved(ctx, path)
	switch {
	case g.r.Discard, errors.Is(err, fs.ErrNotExist): // its folder is missing: git's record is removed
	case err != nil:
		return err
	case len(paths) > 0:
		return fmt.Errorf("remove checkout: %s", g.unsavedIn(path, paths, lost))
	}
	return g.source.RemoveWorktree(ctx, path, true)
}

// ofBranch returns the branch, unless it stays.
func (g *gitRemoval) ofBranch(ctx context.Context, besides []string) error {
	own, err := g.source.OwnWork(ctx, g.branch, besides...)
	if err != nil || own.At == "" {
		return err
	}
	where := g.branch + " in " + g.source.Root()
	if g.r.KeepBranch {
		g.p.keep("branch %s, at %.12s (--keep-branch)", where, own.At)
		return nil
	}
	delivered := g.delivered(ctx, own, besides)
	note := "all its commits are also on another branch or tag"
	if n := len(own.Only); n > 0 {
		note = counted(n, "commit") + " on no other branch or tag" + delivered
	}
	if len(own.Only) > 0 && delivered == "" && !g.r.Discard {
		g.p.refuse("its branch %s has commits that nothing else leads to (%s). To keep them, merge them (%s) or use "+
			"--keep-branch; to lose them: --discard",
			g.branch, few(own.Only), shell.Line("git", "-C", g.source.Root(), "merge", g.branch))
	}
	g.p.part("branch", where, Amount{}, note,
		func(ctx context.Context) error { return g.source.RemoveBranch(ctx, g.branch, own.At) })
	return nil
}

// delivered reports whether all commits of the branch were delivered as a commit that still exists; empty: they were
// not, or not as a commit, because files in a checkout may have been changed or reset since.
func (g *gitRemoval) delivered(ctx context.Context, own repo.BranchContent, besides []string) string {
	d := g.s.state.Delivery
	if d == nil || !d.Delivered || g.s.state.Commit != own.At || d.Commit == "" ||
		!g.source.Contains(ctx, d.Commit, besides...) {
		return ""
	}
	return fmt.Sprintf("; their changes were delivered to the %s %s", d.To, d.Target)
}

// samePath reports whether two paths are the same place, through any links.
func samePath(a, b string) bool {
	real := func(p string) string {
		if r, err := filepath.EvalSymlinks(filepath.Dir(p)); err == nil {
			return filepath.Join(r, filepath.Base(p))
		}
		return p
	}
	return real(a) == real(b)
}

// Package repo works on git repositories through the git program: a checkout of its own for each run, commits in it, its changes as a
// patch, and the delivery of that patch or branch.
//
// It promises that the source checkout is only ever changed by [Repo.Apply], [Repo.FastForward] and [Repo.CommitAll], that whatever
// throws work away happens in a linked worktree on a branch under [BranchPrefix] and nowhere else, that no hook of the user runs in
// these operations, and that git never asks a question. It does not speak to remotes.
package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// BranchPrefix begins the name of every branch that belongs to a run.
const BranchPrefix = "passbook/"

// Why a folder cannot be the source of a run. What Open returns wraps one of them.
var (
	ErrNoGit         = errors.New("no usable git program")
	ErrNotRepository = errors.New("not inside a git checkout")
	ErrBare          = errors.New("a bare repository has no checkout")
	ErrUnborn        = errors.New("the repository has no commit yet")
)

// Repo is one checkout of a git repository. Its methods may be called by several goroutines and processes at once; git's own locks
// let one of two writers of the same thing fail.
type Repo struct {
	git    git
	root   string // of the checkout; absolute, without symbolic links
	gitDir string // of this checkout
	common string // what all checkouts of the repository share
}

// Open finds the checkout that dir is in. dir may be any folder below its root.
func Open(ctx context.Context, dir string) (*Repo, error) {
	doing := "open the git repository at " + dir
	r, err := open(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	if _, err := r.git.out(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		return nil, fmt.Errorf("%s: %w: make a first commit there (git commit), and try again", doing, ErrUnborn)
	}
	return r, nil
}

// OpenRefs is Open for the branches and the list of checkouts: the repository may also be bare, or have no commit.
func OpenRefs(ctx context.Context, dir string) (*Repo, error) {
	r, err := open(ctx, dir)
	if errors.Is(err, ErrBare) {
		r, err = at(ctx, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open the git repository at %s: %w", dir, err)
	}
	return r, nil
}

func open(ctx context.Context, dir string) (*Repo, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	g := git{dir: dir}
	if err := g.checkVersion(ctx); err != nil {
		return nil, err
	}
	bare, err := g.line(ctx, "rev-parse", "--is-bare-repository")
	if err != nil {
		return nil, notRepository(err)
	}
	if bare == "true" {
		return nil, fmt.Errorf("%w: name a clone of it that has files", ErrBare)
	}
	top, err := g.line(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRepository, err)
	}
	if top, err = filepath.EvalSymlinks(top); err != nil {
		return nil, err
	}
	return at(ctx, top)
}

// at is the checkout whose root is top.
func at(ctx context.Context, top string) (*Repo, error) {
	g := git{dir: top}
	own, err := g.line(ctx, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return nil, err
	}
	common, err := g.line(ctx, "rev-parse", "--git-common-dir") // --path-format=absolute is younger than the oldest git we take
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(common) {
		common = filepath.Join(top, common)
	}
	if common, err = filepath.EvalSymlinks(common); err != nil {
		return nil, err
	}
	return &Repo{git: g, root: top, gitDir: own, common: common}, nil
}

// notRepository tells "there is none" from every other failure. Git has one exit code for all of them, and its words are fixed by LC_ALL=C.
func notRepository(err error) error {
	var e *Error
	if errors.As(err, &e) && strings.Contains(e.Said, "not a git repository") {
		return fmt.Errorf("%w: make it one (git init, git add, git commit), or name another folder", ErrNotRepository)
	}
	return err
}

// Root is the top folder of the checkout: absolute, without symbolic links.
func (r *Repo) Root() string { return r.root }

// Head gives the checked-out commit and its branch; the branch is "" when HEAD is detached.
func (r *Repo) Head(ctx context.Context) (commit, branch string, err error) {
	if commit, err = r.commit(ctx, "HEAD"); err != nil {
		return "", "", err
	}
	branch, err = r.git.line(ctx, "symbolic-ref", "--quiet", "HEAD")
	if exitCode(err) == 1 {
		return commit, "", nil
	}
	return commit, strings.TrimPrefix(branch, "refs/heads/"), err
}

// commit resolves a name to the full id of a commit.
func (r *Repo) commit(ctx context.Context, name string) (string, error) {
	id, err := r.git.line(ctx, "rev-parse", "--verify", "--end-of-options", name+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("find commit %s in %s: %w", name, r.root, err)
	}
	return id, nil
}

// branchAt gives the commit of a branch, "" if there is no such branch.
func (r *Repo) branchAt(ctx context.Context, branch string) (string, error) {
	id, err := r.git.line(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
	if exitCode(err) == 1 {
		return "", nil
	}
	return id, err
}

// isAncestor says whether old is reachable from young.
func (r *Repo) isAncestor(ctx context.Context, old, young string) (bool, error) {
	_, err := r.git.out(ctx, "merge-base", "--is-ancestor", old, young)
	if exitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

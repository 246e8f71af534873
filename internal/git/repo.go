// Package git works on git repositories with the git program: mirrors with the start commits of runs, the repository in
// the folder of a run, the branch of a run in the source, and deliveries to branches and checkouts.
//
// Only [Repo.Record], [Repo.Join], [Repo.CommitOn], [Repo.CommitAll], [Repo.Apply], [Repo.CreateBranch] and
// [Repo.RemoveBranch] change refs of the source, and only [Repo.Apply] and [Repo.CommitAll] its checkout. Nothing runs
// that an agent wrote: git is never run in the folder of a run, no attributes of an agent apply, and no hooks run. Git
// never prompts. Only [Repo.FetchTip] and [Repo.Push] access a remote.
package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// BranchPrefix is the prefix of all branches of runs.
const BranchPrefix = "passbook/"

// Reasons why a folder cannot be the source of a run. Errors of Open wrap them.
var (
	ErrNoGit         = errors.New("no usable git program")
	ErrNotRepository = errors.New("not inside a git checkout")
	ErrBare          = errors.New("a bare repository has no checkout")
	ErrUnborn        = errors.New("the repository has no commit yet")
)

// Missing reports whether an error of Open means that no repository is at its place, or none that a run can use.
func Missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotRepository) || errors.Is(err, ErrBare) ||
		errors.Is(err, ErrUnborn)
}

// Repo is one checkout of a git repository. It is safe for concurrent use, also by several processes; because of
// git's locks, one of two conflicting writers fails.
type Repo struct {
	git    git
	root   string // of the checkout; absolute, without symbolic links
	gitDir string // of this checkout
	common string // shared by all checkouts

	step func(string) error // of tests: fails before a step of a delivery
}

// Open opens the checkout that contains dir.
func Open(ctx context.Context, dir string) (*Repo, error) { return openBorn(ctx, dir, own) }

// OpenReceived is Open for a repository that a run directory names, which may come from elsewhere: no command of the
// repository's configuration runs.
func OpenReceived(ctx context.Context, dir string) (*Repo, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("open the git repository at %s: %w: the path is not absolute", dir, ErrNotRepository)
	}
	return openBorn(ctx, dir, received)
}

func openBorn(ctx context.Context, dir string, from origin) (*Repo, error) {
	doing := "open the git repository at " + dir
	r, err := open(ctx, dir, from)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	if _, err := r.git.output(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		return nil, fmt.Errorf("%s: %w: create a first commit there (git commit) and retry", doing, ErrUnborn)
	}
	return r, nil
}

// OpenRefs is Open for branches and the list of checkouts: the repository may be bare or without a commit.
func OpenRefs(ctx context.Context, dir string) (*Repo, error) {
	r, err := open(ctx, dir, received)
	if errors.Is(err, ErrBare) {
		r, err = openAt(ctx, dir, received)
	}
	if err != nil {
		return nil, fmt.Errorf("open the git repository at %s: %w", dir, err)
	}
	return r, nil
}

func open(ctx context.Context, dir string, from origin) (*Repo, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	return git{dir: dir}.open(ctx, from)
}

func (g git) open(ctx context.Context, from origin) (*Repo, error) {
	if err := g.checkVersion(ctx); err != nil {
		return nil, err
	}
	reading, cancel := g.reading(ctx)
	defer cancel()
	bare, err := g.line(reading, "rev-parse", "--is-bare-repository")
	if err != nil {
		return nil, notRepository(err)
	}
	if bare == "true" {
		return nil, fmt.Errorf("%w: use a clone with a checkout", ErrBare)
	}
	top, err := g.line(reading, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRepository, err)
	}
	if top, err = filepath.EvalSymlinks(top); err != nil {
		return nil, err
	}
	return openAt(ctx, top, from)
}

// openAt returns the checkout whose root is top.
func openAt(ctx context.Context, top string, from origin) (*Repo, error) {
	g, err := git{dir: top}.guarded(ctx, from)
	if err != nil {
		return nil, err
	}
	gitDir, err := g.line(ctx, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return nil, err
	}
	common, err := g.line(ctx, "rev-parse", "--git-common-dir") // the oldest supported git lacks --path-format=absolute
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(common) {
		common = filepath.Join(top, common)
	}
	if common, err = filepath.EvalSymlinks(common); err != nil {
		return nil, err
	}
	return &Repo{git: g, root: top, gitDir: gitDir, common: common}, nil
}

// notRepository identifies the error for a missing repository. Git has one exit code for all errors; LC_ALL=C
// fixes the message.
func notRepository(err error) error {
	var e *Error
	if errors.As(err, &e) && strings.Contains(e.Message, "not a git repository") {
		return fmt.Errorf("%w: create a repository there (git init, git add, git commit) or use another folder",
			ErrNotRepository)
	}
	return err
}

// Root returns the top folder of the checkout: absolute, without symbolic links.
func (r *Repo) Root() string { return r.root }

// Head returns the checked-out commit and its branch; the branch is "" if HEAD is detached.
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

// Commit returns the commit that a name stands for.
func (r *Repo) Commit(ctx context.Context, name string) (string, error) { return r.commit(ctx, name) }

// commit resolves a name to a commit id.
func (r *Repo) commit(ctx context.Context, name string) (string, error) {
	id, err := r.git.line(ctx, "rev-parse", "--verify", "--end-of-options", name+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("find commit %s in %s: %w", name, r.root, err)
	}
	return id, nil
}

// branchAt returns the commit of a branch, or "" if it does not exist.
func (r *Repo) branchAt(ctx context.Context, branch string) (string, error) {
	id, err := r.git.line(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
	if exitCode(err) == 1 {
		return "", nil
	}
	return id, err
}

// isAncestor reports whether old is reachable from young.
func (r *Repo) isAncestor(ctx context.Context, old, young string) (bool, error) {
	_, err := r.git.output(ctx, "merge-base", "--is-ancestor", old, young)
	if exitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

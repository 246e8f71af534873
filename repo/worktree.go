package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrNotOurs says that a checkout is not a run's own: not a linked worktree, or not on a branch under [BranchPrefix].
var ErrNotOurs = errors.New("not a checkout of a run")

// ErrLost says that a folder was the checkout of a run, and git has no record of it any more.
var ErrLost = errors.New("git has no record of this checkout")

// Worktree is a run's own checkout: a linked worktree of the source repository on the run's branch.
type Worktree struct{ Repo }

// BranchError says that a branch stands in the way: it is at another commit than asked for, or checked out somewhere else.
type BranchError struct {
	Branch string
	At     string // its commit
	Path   string // the checkout that has it; "" if none
}

func (e *BranchError) Error() string {
	if e.Path != "" {
		return fmt.Sprintf("branch %s is checked out at %s", e.Branch, e.Path)
	}
	return fmt.Sprintf("branch %s is there already, at commit %s", e.Branch, e.At)
}

// OpenWorktree opens the checkout of a run whose root is path. One that was moved is repaired first.
func OpenWorktree(ctx context.Context, path string) (*Worktree, error) {
	w, err := openWorktree(ctx, path, git{dir: path})
	if err != nil {
		return nil, fmt.Errorf("open worktree %s: %w", path, err)
	}
	return w, nil
}

// openWorktree repairs the worktree from another checkout, or from itself, if the two folders that name each other do not.
func openWorktree(ctx context.Context, path string, from git) (*Worktree, error) {
	info, err := os.Lstat(filepath.Join(path, ".git"))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is a repository of its own", ErrNotOurs)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	g := git{dir: path}
	if err := g.checkVersion(ctx); err != nil {
		return nil, err
	}
	r, err := at(ctx, path)
	if err == nil {
		if holder := r.takenBy(path); holder != "" {
			return nil, fmt.Errorf("%w: its record is now that of %s. Move %s away to have it made again", ErrLost, holder, path)
		}
	}
	if err != nil || !r.isNamed() {
		if _, err := from.out(ctx, "worktree", "repair", path); err != nil {
			return nil, err
		}
		if r, err = at(ctx, path); err != nil {
			return nil, err
		}
	}
	if r.gitDir == r.common || filepath.Base(filepath.Dir(r.gitDir)) != "worktrees" {
		return nil, fmt.Errorf("%w: it is no linked worktree", ErrNotOurs)
	}
	return &Worktree{*r}, nil
}

// isNamed says whether the repository knows where this worktree is.
func (r *Repo) isNamed() bool {
	known, err := os.ReadFile(filepath.Join(r.gitDir, "gitdir"))
	return err == nil && strings.TrimSuffix(string(known), "\n") == filepath.Join(r.root, ".git")
}

// takenBy is the other folder whose .git leads to the same record as that of the worktree at path: git has made it where this one was before it was
// moved, or this one is a copy of it. Empty: there is none.
func (r *Repo) takenBy(path string) string {
	known, err := os.ReadFile(filepath.Join(r.gitDir, "gitdir"))
	if err != nil {
		return ""
	}
	other, own := strings.TrimSuffix(string(known), "\n"), filepath.Join(path, ".git")
	a, aerr := os.Stat(other)
	b, berr := os.Stat(own)
	if aerr != nil || berr != nil || os.SameFile(a, b) {
		return ""
	}
	leads, err := os.ReadFile(other)
	if is, oerr := os.ReadFile(own); err != nil || oerr != nil || string(leads) != string(is) {
		return ""
	}
	return filepath.Dir(other)
}

// AddWorktree makes a checkout of commit at path, on a new branch. An equal one that is there already is returned: on this branch, at the
// commit or after it; it may have been moved. A registration whose folder is gone is replaced if it has this path or this branch; all
// others stay, for their disk may only be away. A branch that is there at another commit, or checked out elsewhere, is a [*BranchError].
func (r *Repo) AddWorktree(ctx context.Context, path, branch, commit string) (*Worktree, error) {
	var w *Worktree
	err := alone(ctx, r.common, worktreesLock, func() (err error) {
		w, err = r.addWorktree(ctx, path, branch, commit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("add worktree %s on branch %s: %w", path, branch, err)
	}
	return w, nil
}

func (r *Repo) addWorktree(ctx context.Context, path, branch, commit string) (*Worktree, error) {
	if !strings.HasPrefix(branch, BranchPrefix) {
		return nil, fmt.Errorf("%w: its branch must begin with %s", ErrNotOurs, BranchPrefix)
	}
	id, err := r.commit(ctx, commit)
	if err != nil {
		return nil, err
	}
	if path, err = resolveParent(path); err != nil {
		return nil, err
	}
	switch _, err := os.Lstat(filepath.Join(path, ".git")); {
	case err == nil:
		return r.adopt(ctx, path, branch, id)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return r.create(ctx, path, branch, id)
}

// adopt returns the worktree that is at path if it is the one asked for.
func (r *Repo) adopt(ctx context.Context, path, branch, commit string) (*Worktree, error) {
	w, err := openWorktree(ctx, path, r.git)
	if err != nil {
		return nil, err
	}
	if w.common != r.common {
		return nil, fmt.Errorf("%w: it belongs to the repository %s, not to %s", ErrNotOurs, w.common, r.common)
	}
	if w.isHalfMade() {
		if err := r.unregisterHalfMade(ctx, path); err != nil {
			return nil, err
		}
		return r.create(ctx, path, branch, commit)
	}
	head, on, err := w.Head(ctx)
	if err != nil {
		return nil, err
	}
	if on != branch {
		return nil, fmt.Errorf("%w: it has branch %q checked out", ErrNotOurs, on)
	}
	ok, err := r.isAncestor(ctx, commit, head)
	if err == nil && !ok {
		return nil, &BranchError{Branch: branch, At: head}
	}
	return w, err
}

func (r *Repo) create(ctx context.Context, path, branch, commit string) (*Worktree, error) {
	if err := r.clearStale(ctx, path, branch); err != nil {
		return nil, err
	}
	at, err := r.branchAt(ctx, branch)
	if err != nil {
		return nil, err
	}
	args := []string{"worktree", "add", "--quiet", "--no-track", "-b", branch, path, commit}
	switch at {
	case "":
	case commit:
		args = []string{"worktree", "add", "--quiet", path, branch}
	default:
		return nil, &BranchError{Branch: branch, At: at}
	}
	if _, err := r.git.out(ctx, args...); err != nil {
		return nil, err
	}
	return openWorktree(ctx, path, r.git)
}

// RemoveWorktree removes the checkout of a run at path with all that is in it, and its branch unless that is to be kept. What is gone
// already is no error, nor is a checkout that was removed in part. It refuses any checkout that is not a run's own.
func (r *Repo) RemoveWorktree(ctx context.Context, path string, keepBranch bool) error {
	return r.removing(ctx, path, func(w registration) error {
		if !strings.HasPrefix(w.branch, BranchPrefix) {
			return fmt.Errorf("%w: it has %q checked out", ErrNotOurs, w.branch)
		}
		if err := r.discard(ctx, w.path); err != nil || keepBranch {
			return err
		}
		_, err := r.git.out(ctx, "update-ref", "-d", "refs/heads/"+w.branch)
		return err
	})
}

// DiscardWorktree removes the linked worktree at path with all that is in it, whatever it has checked out. Its branch stays.
func (r *Repo) DiscardWorktree(ctx context.Context, path string) error {
	return r.removing(ctx, path, func(w registration) error { return r.discard(ctx, w.path) })
}

// removing finds what the repository has registered of a path, and removes it. What is not registered is gone already.
func (r *Repo) removing(ctx context.Context, path string, remove func(registration) error) error {
	if err := alone(ctx, r.common, worktreesLock, func() error { return r.findRegistered(ctx, path, remove) }); err != nil {
		return fmt.Errorf("remove worktree %s: %w", path, err)
	}
	return nil
}

func (r *Repo) findRegistered(ctx context.Context, path string, remove func(registration) error) error {
	path, err := resolveParent(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil {
		if _, err := openWorktree(ctx, path, r.git); err != nil { // repairs the registration of a moved one
			return err
		}
	}
	list, err := r.registered(ctx)
	if err != nil {
		return err
	}
	for i, w := range list {
		if i > 0 && w.path == path { // the first is the repository itself
			return remove(w)
		}
	}
	return nil
}

// discard takes a worktree out of its place in one step, has git forget it, and deletes it: cut off, it leaves no checkout that lacks a part of its
// files. Git refuses one that a person has locked.
func (r *Repo) discard(ctx context.Context, path string) error {
	aside, err := setAside(path)
	if err != nil {
		return err
	}
	if err := r.unregister(ctx, path); err != nil {
		if aside != "" {
			err = errors.Join(err, os.Rename(aside, path))
		}
		return err
	}
	if aside == "" {
		return nil
	}
	return os.RemoveAll(aside)
}

// setAside renames a folder to a name beside it, workspace~1; empty: it is gone.
func setAside(path string) (string, error) {
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s~%d", path, n)
		if _, err := os.Lstat(aside); err == nil {
			continue
		}
		err := os.Rename(path, aside)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return aside, err
	}
}

// resolveParent makes a path absolute and takes the symbolic links out of the folders above it, as git does.
func resolveParent(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return filepath.Join(parent, filepath.Base(path)), err
}

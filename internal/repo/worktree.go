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

// ErrNotOwned means that a checkout is not a run's: not a linked worktree, or not on a branch under [BranchPrefix].
var ErrNotOwned = errors.New("not a checkout of a run")

// ErrLost means that a folder was the checkout of a run, and git no longer has a record of it.
var ErrLost = errors.New("git has no record of this checkout")

// Worktree is a run's checkout: a linked worktree of the source repository on the run's branch.
type Worktree struct{ Repo }

// BranchError means that a branch is at another commit than wanted, or checked out elsewhere.
type BranchError struct {
	Branch string
	At     string // current commit
	Path   string // its checkout, or ""
}

func (e *BranchError) Error() string {
	if e.Path != "" {
		return fmt.Sprintf("branch %s is checked out at %s", e.Branch, e.Path)
	}
	return fmt.Sprintf("branch %s already exists at commit %s", e.Branch, e.At)
}

// OpenWorktree opens the checkout of a run at path whose repository is not known: its .git may lead to any. No command
// of the repository's configuration runs. A moved checkout is repaired first.
func OpenWorktree(ctx context.Context, path string) (*Worktree, error) {
	w, err := openWorktree(ctx, path, git{dir: path}, received)
	if err != nil {
		return nil, fmt.Errorf("open worktree %s: %w", path, err)
	}
	return w, nil
}

// Worktree opens the checkout of a run at path, which must be one of this repository: its .git may have been replaced.
func (r *Repo) Worktree(ctx context.Context, path string) (*Worktree, error) {
	w, err := openWorktree(ctx, path, r.git, r.from)
	if err == nil && w.common != r.common {
		err = fmt.Errorf("%w: its .git leads to the repository %s, not to %s; move it away to recreate it", ErrNotOwned,
			w.common, r.common)
	}
	if err != nil {
		return nil, fmt.Errorf("open worktree %s: %w", path, err)
	}
	return w, nil
}

// openWorktree opens a worktree and, if it was moved, repairs it from another checkout or from itself.
func openWorktree(ctx context.Context, path string, from git, whose origin) (*Worktree, error) {
	info, err := os.Lstat(filepath.Join(path, ".git"))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is a separate repository", ErrNotOwned)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	g := git{dir: path}
	if err := g.checkVersion(ctx); err != nil {
		return nil, err
	}
	r, err := openAt(ctx, path, whose)
	if err == nil {
		if holder := r.otherHolder(path); holder != "" {
			return nil, fmt.Errorf("%w: its record is now that of %s; move %s away to recreate it", ErrLost, holder,
				path)
		}
	}
	if errors.Is(err, errSlowConfig) { // a repair reads it too
		return nil, err
	}
	if err != nil || !r.registeredHere() {
		if _, err := from.output(ctx, "worktree", "repair", path); err != nil {
			return nil, err
		}
		if r, err = openAt(ctx, path, whose); err != nil {
			return nil, err
		}
	}
	if r.gitDir == r.common || filepath.Base(filepath.Dir(r.gitDir)) != "worktrees" {
		return nil, fmt.Errorf("%w: not a linked worktree", ErrNotOwned)
	}
	return &Worktree{*r}, nil
}

// registeredHere reports whether the repository records this location of the worktree.
func (r *Repo) registeredHere() bool {
	known, err := os.ReadFile(filepath.Join(r.gitDir, "gitdir"))
	return err == nil && strings.TrimSuffix(string(known), "\n") == filepath.Join(r.root, ".git")
}

// otherHolder returns the other folder whose .git has the same record as the worktree at path: a new worktree at the
// old location of a moved one, or the original of a copy. Empty: none.
func (r *Repo) otherHolder(path string) string {
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

// AddWorktree creates a checkout of commit at path on a new branch. A matching existing one is returned, even if
// moved: on this branch, at the commit or a later one. A registration without a folder is replaced if it has this
// path or branch; others are kept, as their disk may be unmounted. A branch that exists at another commit or is
// checked out elsewhere is a [*BranchError].
func (r *Repo) AddWorktree(ctx context.Context, path, branch, commit string) (*Worktree, error) {
	var w *Worktree
	err := withLock(ctx, r.common, worktreesLock, func() (err error) {
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
		return nil, fmt.Errorf("%w: its branch must start with %s", ErrNotOwned, BranchPrefix)
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

// adopt returns the worktree at path if it matches.
func (r *Repo) adopt(ctx context.Context, path, branch, commit string) (*Worktree, error) {
	w, err := openWorktree(ctx, path, r.git, r.from)
	if err != nil {
		return nil, err
	}
	if w.common != r.common {
		return nil, fmt.Errorf("%w: it belongs to the repository %s, not to %s", ErrNotOwned, w.common, r.common)
	}
	if w.incomplete() {
		if err := r.unregisterIncomplete(ctx, path); err != nil {
			return nil, err
		}
		return r.create(ctx, path, branch, commit)
	}
	head, on, err := w.Head(ctx)
	if err != nil {
		return nil, err
	}
	if on != branch {
		return nil, fmt.Errorf("%w: it has branch %q checked out", ErrNotOwned, on)
	}
	ok, err := r.isAncestor(ctx, commit, head)
	if err == nil && !ok {
		return nil, &BranchError{Branch: branch, At: head}
	}
	return w, err
}

func (r *Repo) create(ctx context.Context, path, branch, commit string) (*Worktree, error) {
	if err := r.pruneStale(ctx, path, branch); err != nil {
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
	if _, err := r.git.output(ctx, args...); err != nil {
		return nil, err
	}
	return openWorktree(ctx, path, r.git, r.from)
}

// RemoveWorktree removes the checkout of a run at path, and its branch unless keepBranch. A missing or partially
// removed one is not an error. It refuses a checkout that is not a run's.
func (r *Repo) RemoveWorktree(ctx context.Context, path string, keepBranch bool) error {
	return r.removeRegistered(ctx, path, func(w registration) error {
		if !strings.HasPrefix(w.branch, BranchPrefix) {
			return fmt.Errorf("%w: it has %q checked out", ErrNotOwned, w.branch)
		}
		if err := r.discard(ctx, w.path); err != nil || keepBranch {
			return err
		}
		_, err := r.git.output(ctx, "update-ref", "-d", "refs/heads/"+w.branch)
		return err
	})
}

// DiscardWorktree removes the linked worktree at path, whatever it has checked out. Its branch is kept.
func (r *Repo) DiscardWorktree(ctx context.Context, path string) error {
	return r.removeRegistered(ctx, path, func(w registration) error { return r.discard(ctx, w.path) })
}

// removeRegistered removes the registered checkout of a path, if any.
func (r *Repo) removeRegistered(ctx context.Context, path string, remove func(registration) error) error {
	if err := withLock(ctx, r.common, worktreesLock,
		func() error { return r.findRegistered(ctx, path, remove) }); err != nil {
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
		if _, err := openWorktree(ctx, path, r.git, r.from); err != nil { // repairs the registration of a moved one
			return err
		}
	}
	list, err := r.registered(ctx)
	if err != nil {
		return err
	}
	for i, w := range list {
		if i > 0 && w.path == path { // the first is the main checkout
			return remove(w)
		}
	}
	return nil
}

// discard renames a worktree, unregisters it, and deletes it: an interruption leaves no incomplete checkout. Git
// refuses one that a user has locked.
func (r *Repo) discard(ctx context.Context, path string) error {
	backup, err := renameToBackup(path)
	if err != nil {
		return err
	}
	if err := r.unregister(ctx, path); err != nil {
		if backup != "" {
			err = errors.Join(err, os.Rename(backup, path))
		}
		return err
	}
	if backup == "" {
		return nil
	}
	return os.RemoveAll(backup)
}

// renameToBackup renames a folder to a free name beside it, workspace~1; empty: it does not exist.
func renameToBackup(path string) (string, error) {
	for n := 1; ; n++ {
		backup := fmt.Sprintf("%s~%d", path, n)
		if _, err := os.Lstat(backup); err == nil {
			continue
		}
		err := os.Rename(path, backup)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return backup, err
	}
}

// resolveParent makes a path absolute and resolves symbolic links in its parent, as git does.
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

package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Scratch makes dir, which holds files already, a repository of its own at a commit of the source: HEAD is detached there, the index is that
// commit's, and the files stay as they are. It shares only objects with the source, and reads them, so whatever is done with git in dir reaches
// nothing of the source's. A source that is not there is fs.ErrNotExist.
func Scratch(ctx context.Context, dir, source, commit string) error {
	if err := scratch(ctx, dir, source, commit); err != nil {
		return fmt.Errorf("make %s a repository at commit %s of %s: %w", dir, commit, source, err)
	}
	return nil
}

func scratch(ctx context.Context, dir, source, commit string) error {
	r, err := Open(ctx, source)
	if err != nil {
		return err
	}
	g := git{dir: dir}
	format, err := r.git.line(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return err
	}
	if _, err := g.out(ctx, "init", "--quiet", "--template=", "--object-format="+format); err != nil { // without the user's hooks
		return err
	}
	alternates := filepath.Join(dir, ".git", "objects", "info", "alternates")
	if err := os.MkdirAll(filepath.Dir(alternates), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(alternates, []byte(filepath.Join(r.common, "objects")+"\n"), 0o600); err != nil {
		return err
	}
	if _, err := g.out(ctx, "update-ref", "--no-deref", "HEAD", commit); err != nil {
		return err
	}
	_, err = g.out(ctx, "read-tree", commit)
	return err
}

// CommitPatch makes one commit of a patch and brings a branch to it: a new branch that begins at base, or the one that is there, moved forward.
// No file of any checkout changes, but those of a checkout that has the branch. A branch whose newest commit has the trailer already is left as it
// is, and that commit given. A patch that does not fit the branch is a [*ConflictError]; a branch that is checked out elsewhere is a [*BranchError],
// and one whose checkout here cannot take the patch, or that git does not make or move, a [*RefusedError].
func (r *Repo) CommitPatch(ctx context.Context, branch, base string, patch []byte, message, trailer string) (commit string, err error) {
	if commit, err = r.commitPatch(ctx, branch, base, patch, message, trailer); err != nil {
		return "", fmt.Errorf("commit the changes on branch %s of %s: %w", branch, r.root, err)
	}
	return commit, nil
}

func (r *Repo) commitPatch(ctx context.Context, branch, base string, patch []byte, message, trailer string) (string, error) {
	at, err := r.branchAt(ctx, branch)
	if err != nil {
		return "", err
	}
	parent := at
	if parent == "" {
		parent = base
	} else if has, err := r.says(ctx, at, trailer); err != nil || has {
		return at, err
	}
	if err := r.free(ctx, branch, patch); err != nil {
		return "", err
	}
	tree, err := r.patched(ctx, parent, patch)
	if err != nil {
		return "", err
	}
	id, err := r.commitObject(ctx, tree, parent, message)
	if err != nil {
		return "", err
	}
	if at == "" {
		return id, r.CreateBranch(ctx, branch, id)
	}
	return id, r.FastForward(ctx, branch, id)
}

// patched is the tree of a commit with a patch in it. Nothing but objects is written.
func (r *Repo) patched(ctx context.Context, commit string, patch []byte) (tree string, err error) {
	folder, err := os.MkdirTemp("", "passbook-index-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	g := r.git.with("GIT_INDEX_FILE=" + filepath.Join(folder, "index"))
	if _, err := g.out(ctx, "read-tree", commit); err != nil {
		return "", err
	}
	switch misfit, err := misfits(ctx, g, patch, "--cached"); {
	case err != nil:
		return "", err
	case misfit != nil:
		return "", r.conflict(ctx, g, patch, misfit, "--cached", "--check")
	}
	return g.line(ctx, "write-tree")
}

// CommitWith gives the checked-out commit if its message has the trailer; "" if not.
func (r *Repo) CommitWith(ctx context.Context, trailer string) (string, error) {
	head, _, err := r.Head(ctx)
	if err != nil {
		return "", err
	}
	if has, err := r.says(ctx, head, trailer); err != nil || !has {
		return "", err
	}
	return head, nil
}

// says says whether a commit's message has a line.
func (r *Repo) says(ctx context.Context, commit, line string) (bool, error) {
	out, err := r.git.out(ctx, "log", "-1", "--format=%B", commit)
	if err != nil {
		return false, err
	}
	for text := range strings.Lines(string(out)) {
		if strings.TrimSpace(text) == line {
			return true, nil
		}
	}
	return false, nil
}

// CommitPaths records exactly these paths on the checked-out branch, as [Worktree.Commit] does in a run's own checkout. What else is changed or
// staged stays as it is. Without anything to commit the id is "". It refuses while a merge or the like is under way, with a [*RefusedError].
func (r *Repo) CommitPaths(ctx context.Context, message string, paths ...string) (commit string, err error) {
	if len(paths) == 0 {
		return "", nil
	}
	if err := r.idle(); err != nil {
		return "", fmt.Errorf("commit in %s: %w", r.root, err)
	}
	if commit, err = r.commitPaths(ctx, message, paths); err != nil {
		return "", fmt.Errorf("commit in %s: %w", r.root, err)
	}
	return commit, nil
}

// Touched lists every path that a patch reads or writes, old names of renames too.
func (r *Repo) Touched(ctx context.Context, patch []byte) ([]string, error) {
	return r.touched(ctx, patch)
}

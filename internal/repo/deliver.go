package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Scratch makes dir, which already contains files, a separate repository at a commit of the source: with a
// detached HEAD, the index of that commit, and unchanged files. It shares only objects with the source, read-only,
// so git commands in dir cannot change the source. It returns the folder of those objects. A missing source is
// fs.ErrNotExist.
func Scratch(ctx context.Context, dir, source, commit string) (objects string, err error) {
	if objects, err = scratch(ctx, dir, source, commit); err != nil {
		return "", fmt.Errorf("make %s a repository at commit %s of %s: %w", dir, commit, source, err)
	}
	return objects, nil
}

// Objects returns the folder of the objects of the repository that contains dir.
func Objects(ctx context.Context, dir string) (string, error) {
	r, err := Open(ctx, dir)
	if err != nil {
		return "", err
	}
	return r.objects(), nil
}

func (r *Repo) objects() string { return filepath.Join(r.common, "objects") }

func scratch(ctx context.Context, dir, source, commit string) (string, error) {
	r, err := Open(ctx, source)
	if err != nil {
		return "", err
	}
	g := git{dir: dir}
	format, err := r.git.line(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return "", err
	}
	// no hooks of the user
	if _, err := g.output(ctx, "init", "--quiet", "--template=", "--object-format="+format); err != nil {
		return "", err
	}
	alternates := filepath.Join(dir, ".git", "objects", "info", "alternates")
	if err := os.MkdirAll(filepath.Dir(alternates), 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(alternates, []byte(r.objects()+"\n"), 0o600); err != nil {
		return "", err
	}
	if _, err := g.output(ctx, "update-ref", "--no-deref", "HEAD", commit); err != nil {
		return "", err
	}
	_, err = g.output(ctx, "read-tree", commit)
	return r.objects(), err
}

// CommitPatch commits a patch to a branch: a new one at base, or an existing one, moved forward. It changes only
// files of a checkout of the branch. If the branch's newest commit has the trailer, that commit is returned. A
// patch that does not apply is a [*ConflictError], a branch that is checked out elsewhere a [*BranchError], and
// one that cannot be changed a [*RefusedError].
func (r *Repo) CommitPatch(ctx context.Context, branch, base string, patch []byte,
	message, trailer string) (commit string, err error) {
	if commit, err = r.commitPatch(ctx, branch, base, patch, message, trailer); err != nil {
		return "", fmt.Errorf("commit the changes on branch %s of %s: %w", branch, r.root, err)
	}
	return commit, nil
}

func (r *Repo) commitPatch(ctx context.Context, branch, base string, patch []byte,
	message, trailer string) (string, error) {
	at, parent, tree, err := r.patched(ctx, branch, base, patch, trailer)
	if err != nil || tree == "" {
		return at, err
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

// CanCommitPatch returns the error that [Repo.CommitPatch] would return. It changes nothing.
func (r *Repo) CanCommitPatch(ctx context.Context, branch, base string, patch []byte, trailer string) error {
	if _, _, _, err := r.patched(ctx, branch, base, patch, trailer); err != nil {
		return fmt.Errorf("commit the changes on branch %s of %s: %w", branch, r.root, err)
	}
	return nil
}

// patched returns the tree of a branch with a patch applied. An empty tree: the newest commit of the branch has the
// trailer.
func (r *Repo) patched(ctx context.Context, branch, base string, patch []byte,
	trailer string) (at, parent, tree string, err error) {
	if at, err = r.branchAt(ctx, branch); err != nil {
		return "", "", "", err
	}
	if parent = at; parent == "" {
		parent = base
	} else if has, err := r.hasTrailer(ctx, at, trailer); err != nil || has {
		return at, parent, "", err
	}
	if err := r.checkBranch(ctx, branch, patch); err != nil {
		return "", "", "", err
	}
	tree, err = r.patchedTree(ctx, parent, patch)
	return at, parent, tree, err
}

// patchedTree returns the tree of a commit with a patch applied. It writes only objects.
func (r *Repo) patchedTree(ctx context.Context, commit string, patch []byte) (tree string, err error) {
	folder, err := os.MkdirTemp("", "passbook-index-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	g := r.git.withEnv("GIT_INDEX_FILE=" + filepath.Join(folder, "index"))
	if _, err := g.output(ctx, "read-tree", commit); err != nil {
		return "", err
	}
	switch misfit, err := tryApply(ctx, g, patch, "--cached"); {
	case err != nil:
		return "", err
	case misfit != nil:
		return "", r.conflict(ctx, g, patch, misfit, "--cached", "--check")
	}
	return g.line(ctx, "write-tree")
}

// CommitWith returns the checked-out commit if its message contains the trailer, or "".
func (r *Repo) CommitWith(ctx context.Context, trailer string) (string, error) {
	head, _, err := r.Head(ctx)
	if err != nil {
		return "", err
	}
	if has, err := r.hasTrailer(ctx, head, trailer); err != nil || !has {
		return "", err
	}
	return head, nil
}

// hasTrailer reports whether a commit's message contains a line.
func (r *Repo) hasTrailer(ctx context.Context, commit, line string) (bool, error) {
	out, err := r.git.output(ctx, "log", "-1", "--format=%B", commit)
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

// CommitPaths commits exactly these paths on the checked-out branch, like [Worktree.Commit]. Other changes and the
// rest of the index are unchanged. If there is nothing to commit, the id is "". An unfinished merge or the like is
// a [*RefusedError].
func (r *Repo) CommitPaths(ctx context.Context, message string, paths ...string) (commit string, err error) {
	if len(paths) == 0 {
		return "", nil
	}
	if err := r.checkIdle(); err != nil {
		return "", fmt.Errorf("commit in %s: %w", r.root, err)
	}
	if commit, err = r.commitPaths(ctx, message, paths); err != nil {
		return "", fmt.Errorf("commit in %s: %w", r.root, err)
	}
	return commit, nil
}

// Touched returns all paths of a patch, including old names of renames.
func (r *Repo) Touched(ctx context.Context, patch []byte) ([]string, error) {
	return r.touched(ctx, patch)
}

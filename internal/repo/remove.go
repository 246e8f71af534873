package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// BranchContent is the content of a run's branch.
type BranchContent struct {
	At   string   // its commit; "": no such branch
	Only []string // commits on no other branch, tag or checkout, newest first: short id and subject
}

// OwnWork returns the commits that would be lost with a run's branch. Branches besides count as lost too. Nothing
// is written.
func (r *Repo) OwnWork(ctx context.Context, branch string, besides ...string) (BranchContent, error) {
	at, err := r.branchAt(ctx, branch)
	if err != nil || at == "" {
		return BranchContent{}, err
	}
	only, err := r.onlyIn(ctx, at, append(slices.Clip(besides), branch))
	if err != nil {
		return BranchContent{}, fmt.Errorf("list the commits that are only on branch %s: %w", branch, err)
	}
	return BranchContent{At: at, Only: only}, nil
}

// onlyIn returns the ancestors of a commit that are only on these branches.
func (r *Repo) onlyIn(ctx context.Context, commit string, branches []string) (list []string, err error) {
	args := []string{"log", "--format=%h %s", commit, "--not"}
	for _, b := range branches {
		args = append(args, "--exclude="+b)
	}
	args = append(args, "--branches", "--tags", "--remotes")
	if _, err := r.commit(ctx, "HEAD"); err == nil { // a repository with branches may have no commit checked out
		args = append(args, "HEAD")
	}
	out, err := r.git.output(ctx, append(args, "--")...)
	for line := range strings.Lines(string(out)) {
		list = append(list, strings.TrimSpace(line))
	}
	return list, err
}

// Contains reports whether a commit exists and is reachable from something else than these branches.
func (r *Repo) Contains(ctx context.Context, commit string, besides ...string) bool {
	id, err := r.commit(ctx, commit)
	if err != nil {
		return false
	}
	only, err := r.onlyIn(ctx, id, besides)
	return err == nil && len(only) == 0
}

// Checkouts returns the registered folders of a branch, whether or not they exist.
func (r *Repo) Checkouts(ctx context.Context, branch string) ([]string, error) {
	list, err := r.registered(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the checkouts of %s: %w", r.root, err)
	}
	var out []string
	for _, w := range list {
		if w.branch == branch {
			out = append(out, w.path)
		}
	}
	return out, nil
}

// WorktreeDirt returns the status of the linked worktree at path. Unlike [OpenWorktree] it repairs nothing. A
// missing folder is fs.ErrNotExist, a link or a separate repository [ErrNotOurs], a folder that git has no record
// of [ErrLost].
func WorktreeDirt(ctx context.Context, path string) (Dirt, error) {
	if fi, err := os.Lstat(path); err != nil {
		return Dirt{}, err
	} else if fi.Mode().Type() == fs.ModeSymlink {
		return Dirt{}, fmt.Errorf("%s: %w: it is a symbolic link", path, ErrNotOwned)
	}
	fi, err := os.Lstat(filepath.Join(path, ".git"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Dirt{}, fmt.Errorf("%s: %w: it has no .git", path, ErrLost)
	case err != nil:
		return Dirt{}, err
	case !fi.Mode().IsRegular():
		return Dirt{}, fmt.Errorf("%s: %w: it is a separate repository", path, ErrNotOwned)
	}
	r, err := open(ctx, path, received)
	if errors.Is(err, ErrNotRepository) {
		return Dirt{}, fmt.Errorf("%s: %w: its repository was replaced, or git has pruned it", path, ErrLost)
	} else if err != nil {
		return Dirt{}, err
	}
	if holder := r.otherHolder(path); holder != "" {
		return Dirt{}, fmt.Errorf("%s: %w: git's record of it is now that of %s", path, ErrLost, holder)
	}
	return r.Dirt(ctx)
}

// Unsaved returns the files of a folder that differ from a branch and are not ignored, without missing ones. The
// folder need not be a checkout. Nothing is written to the repository.
func (r *Repo) Unsaved(ctx context.Context, path, branch string) ([]string, error) {
	paths, err := r.unsaved(ctx, path, branch)
	if err != nil {
		return nil, fmt.Errorf("compare %s with branch %s of %s: %w", path, branch, r.root, err)
	}
	return paths, nil
}

func (r *Repo) unsaved(ctx context.Context, path, branch string) (paths []string, err error) {
	at, err := r.branchAt(ctx, branch)
	if err == nil && at == "" {
		err = errors.New("no such branch")
	}
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "passbook-index-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	g := git{dir: path, over: r.git.over}.withEnv("GIT_DIR="+r.common, "GIT_WORK_TREE="+path,
		"GIT_INDEX_FILE="+filepath.Join(temp, "index"))
	if _, err := g.output(ctx, "-c", "core.bare=false", "read-tree", at); err != nil {
		return nil, err
	}
	out, err := g.output(ctx, "-c", "core.bare=false", "ls-files", "-z", "--modified", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	return existingPaths(path, splitNUL(out)), nil
}

// existingPaths returns the existing paths below a folder, sorted and unique.
func existingPaths(root string, paths []string) (out []string) {
	for _, p := range paths {
		if _, err := os.Lstat(filepath.Join(root, p)); err == nil {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// SourceOf returns the root of the main checkout of the repository that the linked worktree at path belongs to.
func SourceOf(ctx context.Context, path string) (string, error) {
	if fi, err := os.Lstat(filepath.Join(path, ".git")); err != nil {
		return "", err
	} else if !fi.Mode().IsRegular() {
		return "", fmt.Errorf("%s: %w", path, ErrNotOwned)
	}
	r, err := open(ctx, path, received)
	if err != nil {
		return "", err
	}
	list, err := r.registered(ctx)
	if err != nil {
		return "", err
	}
	return list[0].path, nil
}

// RemoveBranch removes a run's branch if it is still at a commit, and stale registrations of its checkouts. A
// missing branch is not an error; one that is checked out is a [*BranchError].
func (r *Repo) RemoveBranch(ctx context.Context, branch, at string) error {
	if !strings.HasPrefix(branch, BranchPrefix) {
		return fmt.Errorf("remove branch %s: %w: its name must begin with %s", branch, ErrNotOwned, BranchPrefix)
	}
	if err := withLock(ctx, r.common, worktreesLock,
		func() error { return r.removeBranch(ctx, branch, at) }); err != nil {
		return fmt.Errorf("remove branch %s of %s: %w", branch, r.root, err)
	}
	return nil
}

func (r *Repo) removeBranch(ctx context.Context, branch, at string) error {
	if err := r.pruneStale(ctx, "", branch); err != nil {
		return err
	}
	now, err := r.branchAt(ctx, branch)
	switch {
	case err != nil || now == "":
		return err
	case now != at:
		return &BranchError{Branch: branch, At: now}
	}
	_, err = r.git.output(ctx, "update-ref", "-d", "refs/heads/"+branch, at)
	return asRefused(err)
}

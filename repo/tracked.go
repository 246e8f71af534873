package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Tracked lists the files of a commit: paths below the root, with slashes.
func (r *Repo) Tracked(ctx context.Context, commit string) ([]string, error) {
	out, err := r.git.out(ctx, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
	if err != nil {
		return nil, fmt.Errorf("list the files of commit %s: %w", commit, err)
	}
	return zero(out), nil
}

// Origin is the commit that somebody made: that before a commit of [Worktree.Carry], and else the commit itself.
func (r *Repo) Origin(ctx context.Context, commit string) (string, error) {
	subject, err := r.git.line(ctx, "log", "-1", "--format=%s", commit)
	if err != nil || subject != CarryMessage {
		return commit, err
	}
	return r.commit(ctx, commit+"^")
}

// Ignored lists what git ignores in the files at dir, but for what the commit tracks, and what the index of a repository at dir holds: whoever works
// there may have added it in spite of the rules. Paths are below dir with slashes, folders with one at their end. The rules are those in dir and of
// this repository, so whatever was done to a repository at dir hurts nobody.
func (r *Repo) Ignored(ctx context.Context, dir, commit string) ([]string, error) {
	paths, err := r.ignored(ctx, dir, commit)
	if err != nil {
		return nil, fmt.Errorf("list what is ignored in %s: %w", dir, err)
	}
	return paths, nil
}

func (r *Repo) ignored(ctx context.Context, dir, commit string) (paths []string, err error) {
	temp, err := os.MkdirTemp("", "passbook-index-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	g := git{dir: dir}.with("GIT_DIR="+r.common, "GIT_WORK_TREE="+dir, "GIT_INDEX_FILE="+filepath.Join(temp, "index"))
	if _, err := g.out(ctx, "read-tree", commit); err != nil {
		return nil, err
	}
	if err := addIndex(ctx, g, dir); err != nil {
		return nil, err
	}
	out, err := g.out(ctx, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	return zero(out), err
}

// addIndex adds what the index at dir holds. One that cannot be read adds nothing: it is somebody else's.
func addIndex(ctx context.Context, g git, dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
		return nil
	}
	held, err := git{dir: dir}.out(ctx, "ls-files", "-z", "--stage", "--full-name")
	if err == nil && len(held) > 0 {
		_, err = g.feed(ctx, held, "update-index", "-z", "--index-info")
	}
	if err != nil {
		return ctx.Err()
	}
	return nil
}

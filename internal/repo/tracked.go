package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/regular"
)

// Tracked returns the files of a commit: paths below the root, with slashes.
func (r *Repo) Tracked(ctx context.Context, commit string) ([]string, error) {
	out, err := r.git.output(ctx, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
	if err != nil {
		return nil, fmt.Errorf("list the files of commit %s: %w", commit, err)
	}
	return splitNUL(out), nil
}

// Origin returns the user's commit: the parent of a commit of [Worktree.Carry], else the commit itself.
func (r *Repo) Origin(ctx context.Context, commit string) (string, error) {
	subject, err := r.git.line(ctx, "log", "-1", "--format=%s", commit)
	if err != nil || subject != ImportMessage {
		return commit, err
	}
	return r.commit(ctx, commit+"^")
}

// Ignored returns the ignored files at dir, except those tracked by the commit or by the index of a repository at
// dir. Paths are below dir with slashes, folders with a trailing one. The rules are those in dir and of this
// repository, so changes to a repository at dir have no effect.
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
	g := git{dir: dir, over: r.git.over}.withEnv("GIT_DIR="+r.common, "GIT_WORK_TREE="+dir,
		"GIT_INDEX_FILE="+filepath.Join(temp, "index"))
	if _, err := g.output(ctx, "read-tree", commit); err != nil {
		return nil, err
	}
	if err := addIndex(ctx, g, dir, r.common, temp); err != nil {
		return nil, err
	}
	out, err := g.output(ctx, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	return splitNUL(out), err
}

// addIndex adds the entries of the index at dir. It reads a copy of the index: an agent may have written the rest of
// that repository, such as a configuration that includes a pipe. An unreadable index is skipped.
func addIndex(ctx context.Context, g git, dir, common, temp string) error {
	index, err := indexOf(dir, common)
	if err != nil {
		return nil
	}
	raw, err := regular.ReadFile(index, maxIndex)
	if err != nil {
		return nil
	}
	foreign := filepath.Join(temp, "foreign-index")
	if err := os.WriteFile(foreign, raw, 0o600); err != nil {
		return err
	}
	held, err := g.withEnv("GIT_INDEX_FILE="+foreign).output(ctx, "ls-files", "-z", "--stage", "--full-name")
	if err == nil && len(held) > 0 {
		_, err = g.run(ctx, held, "update-index", "-z", "--index-info")
	}
	if err != nil {
		return ctx.Err()
	}
	return nil
}

// maxIndex is the maximum size of an index that is read: some millions of files.
const maxIndex = 256 << 20

// indexOf returns the index of the repository at dir: in .git, or in the folder of a worktree of the repository.
func indexOf(dir, common string) (string, error) {
	const maxLink = 8 << 10
	at := filepath.Join(dir, ".git")
	info, err := os.Lstat(at)
	if err != nil || info.IsDir() {
		return filepath.Join(at, "index"), err
	}
	raw, err := regular.ReadFile(at, maxLink)
	if err != nil {
		return "", err
	}
	to := filepath.Clean(strings.TrimSpace(strings.TrimPrefix(string(raw), "gitdir: ")))
	if filepath.Dir(to) != filepath.Join(common, "worktrees") {
		return "", fs.ErrNotExist
	}
	return filepath.Join(to, "index"), nil
}

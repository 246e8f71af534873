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

// checkOwned returns the branch of the worktree, or [ErrNotOurs] unless it is a run's. A checkout that was switched to
// another branch is not the run's.
func (w *Worktree) checkOwned(ctx context.Context) (branch string, err error) {
	if w.gitDir == w.common {
		return "", fmt.Errorf("%w: not a linked worktree", ErrNotOwned)
	}
	_, branch, err = w.Head(ctx)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(branch, BranchPrefix) {
		return "", fmt.Errorf("%w: it has branch %q checked out (operation in progress: %q)", ErrNotOwned, branch,
			operation(w.gitDir))
	}
	return branch, nil
}

// MessagesSince returns the messages of the commits after commit up to HEAD, newest first.
func (w *Worktree) MessagesSince(ctx context.Context, commit string) ([]string, error) {
	out, err := w.git.output(ctx, "log", "-z", "--format=%B", commit+"..HEAD")
	if err != nil {
		return nil, fmt.Errorf("read the commits of worktree %s since %s: %w", w.root, commit, err)
	}
	return splitNUL(out), nil
}

// Reset resets the worktree and its branch to commit: later changes, files and commits are lost. Ignored files
// stay. It removes a stale index lock, so no process of the run may be active there. A checkout that is not a
// run's is [ErrNotOurs].
func (w *Worktree) Reset(ctx context.Context, commit string) error {
	if err := w.reset(ctx, commit); err != nil {
		return fmt.Errorf("reset worktree %s to %s: %w", w.root, commit, err)
	}
	return nil
}

func (w *Worktree) reset(ctx context.Context, commit string) error {
	if _, err := w.checkOwned(ctx); err != nil {
		return err
	}
	id, err := w.commit(ctx, commit)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(w.gitDir, "index.lock")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := w.git.output(ctx, "reset", "--quiet", "--hard", id); err != nil {
		return err
	}
	_, err = w.git.output(ctx, "clean", "-ffd", "--quiet") // forced twice: removes nested repositories too
	return err
}

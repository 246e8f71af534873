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

// ours gives the branch of the worktree, and [ErrNotOurs] unless it is a run's. A checkout that somebody took over for another branch is
// not ours any more.
func (w *Worktree) ours(ctx context.Context) (branch string, err error) {
	if w.gitDir == w.common {
		return "", fmt.Errorf("%w: it is no linked worktree", ErrNotOurs)
	}
	_, branch, err = w.Head(ctx)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(branch, BranchPrefix) {
		return "", fmt.Errorf("%w: it has branch %q checked out (operation under way: %q)", ErrNotOurs, branch, operation(w.gitDir))
	}
	return branch, nil
}

// MessagesSince gives the messages of the commits that HEAD has and commit has not, newest first.
func (w *Worktree) MessagesSince(ctx context.Context, commit string) ([]string, error) {
	out, err := w.git.out(ctx, "log", "-z", "--format=%B", commit+"..HEAD")
	if err != nil {
		return nil, fmt.Errorf("read the commits of worktree %s since %s: %w", w.root, commit, err)
	}
	return zero(out), nil
}

// Reset makes the worktree and its branch as they were at commit: what was changed, added or committed since is gone. Ignored files stay.
// A lock that a killed git left behind is removed, so nothing of the run may be at work there. It refuses every checkout that is not a
// run's own with [ErrNotOurs].
func (w *Worktree) Reset(ctx context.Context, commit string) error {
	if err := w.reset(ctx, commit); err != nil {
		return fmt.Errorf("reset worktree %s to %s: %w", w.root, commit, err)
	}
	return nil
}

func (w *Worktree) reset(ctx context.Context, commit string) error {
	if _, err := w.ours(ctx); err != nil {
		return err
	}
	id, err := w.commit(ctx, commit)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(w.gitDir, "index.lock")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := w.git.out(ctx, "reset", "--quiet", "--hard", id); err != nil {
		return err
	}
	_, err = w.git.out(ctx, "clean", "-ffd", "--quiet") // twice forced: repositories inside go too
	return err
}

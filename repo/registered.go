package repo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// registration is a checkout that a repository knows of.
type registration struct {
	path   string
	branch string // "" if detached
}

// registered lists all checkouts of the repository.
func (r *Repo) registered(ctx context.Context) ([]registration, error) {
	out, err := r.git.out(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return nil, err
	}
	return parseWorktrees(string(out)), nil
}

// parseWorktrees reads paragraphs of lines "name value". -z is younger than the oldest git we take, so a path with a newline is not read
// right; it then equals no path that anybody asks for.
func parseWorktrees(out string) []registration {
	var list []registration
	for paragraph := range strings.SplitSeq(strings.TrimSpace(out), "\n\n") {
		var w registration
		for line := range strings.SplitSeq(paragraph, "\n") {
			switch name, value, _ := strings.Cut(line, " "); name {
			case "worktree":
				w.path = value
			case "branch":
				w.branch = strings.TrimPrefix(value, "refs/heads/")
			}
		}
		list = append(list, w)
	}
	return list
}

// clearStale takes away the registrations whose folder is gone that have this path or this branch. A branch that another checkout
// really has is a [*BranchError].
func (r *Repo) clearStale(ctx context.Context, path, branch string) error {
	list, err := r.registered(ctx)
	if err != nil {
		return err
	}
	for _, w := range list {
		if w.path != path && w.branch != branch {
			continue
		}
		switch _, err := os.Lstat(w.path); {
		case errors.Is(err, fs.ErrNotExist):
			if err := r.unregister(ctx, w.path); err != nil {
				return err
			}
		case w.branch == branch:
			return &BranchError{Branch: branch, Path: w.path}
		}
	}
	return nil
}

// isHalfMade says whether the making of a worktree was interrupted: git itself holds a lock on it until it is whole.
func (w *Worktree) isHalfMade() bool {
	reason, err := os.ReadFile(filepath.Join(w.gitDir, "locked"))
	return err == nil && strings.TrimSpace(string(reason)) == "initializing"
}

// unregister removes a worktree, its folder included. Git refuses one that a person has locked, and says so.
func (r *Repo) unregister(ctx context.Context, path string) error {
	_, err := r.git.out(ctx, "worktree", "remove", "--force", "--", path)
	return err
}

// unregisterHalfMade removes a worktree in spite of the lock that git holds on it.
func (r *Repo) unregisterHalfMade(ctx context.Context, path string) error {
	_, err := r.git.out(ctx, "worktree", "remove", "--force", "--force", "--", path)
	return err
}

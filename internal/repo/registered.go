package repo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// registration is a registered checkout of a repository.
type registration struct {
	path   string
	branch string // "" if detached
}

// registered returns all checkouts of the repository.
func (r *Repo) registered(ctx context.Context) ([]registration, error) {
	out, err := r.git.output(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return nil, err
	}
	return parseWorktrees(string(out)), nil
}

// parseWorktrees parses paragraphs of "name value" lines. The oldest supported git has no -z, so a path with a
// newline is misread; it then matches no path.
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

// pruneStale removes registrations without a folder that have this path or branch. A branch with a real checkout
// is a [*BranchError].
func (r *Repo) pruneStale(ctx context.Context, path, branch string) error {
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

// incomplete reports whether the creation of a worktree was interrupted: git locks it until it is complete.
func (w *Worktree) incomplete() bool {
	reason, err := os.ReadFile(filepath.Join(w.gitDir, "locked"))
	return err == nil && strings.TrimSpace(string(reason)) == "initializing"
}

// unregister removes a worktree with its folder. Git refuses one that a user has locked.
func (r *Repo) unregister(ctx context.Context, path string) error {
	_, err := r.git.output(ctx, "worktree", "remove", "--force", "--", path)
	return err
}

// unregisterIncomplete removes a worktree despite git's lock.
func (r *Repo) unregisterIncomplete(ctx context.Context, path string) error {
	_, err := r.git.output(ctx, "worktree", "remove", "--force", "--force", "--", path)
	return err
}

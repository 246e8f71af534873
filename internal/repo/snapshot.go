package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// snapshot stores what a commit of the checkout would contain as a tree and returns its id. Ignored files are
// excluded, and untracked ones unless requested. Index and files are unchanged.
func (r *Repo) snapshot(ctx context.Context, untracked bool) (tree string, err error) {
	index, drop, err := r.copyIndex()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, drop()) }()
	g := r.git.withEnv("GIT_INDEX_FILE=" + index)
	all := "--all"
	if !untracked {
		all = "--update"
	}
	if _, err := g.output(ctx, "add", all); err != nil {
		return "", err
	}
	return g.line(ctx, "write-tree")
}

// copyIndex copies the index for a git command that must not change it. The copy keeps the time of the original,
// which git needs to detect changed files.
func (r *Repo) copyIndex() (path string, drop func() error, err error) {
	dir, err := os.MkdirTemp("", "passbook-index-")
	if err != nil {
		return "", nil, err
	}
	drop = func() error { return os.RemoveAll(dir) }
	path = filepath.Join(dir, "index")
	original := filepath.Join(r.gitDir, "index")
	// no index: nothing is tracked
	if err := copyWithTime(original, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("copy the index of %s: %w", r.root, errors.Join(err, drop()))
	}
	return path, drop, nil
}

func copyWithTime(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// snapshot writes all that a commit of the checkout would hold as a tree into the object database, and gives its id. Ignored files are
// left out, and untracked ones unless asked for. The index and the files stay as they are.
func (r *Repo) snapshot(ctx context.Context, untracked bool) (tree string, err error) {
	index, drop, err := r.copyIndex()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, drop()) }()
	g := r.git.with("GIT_INDEX_FILE=" + index)
	all := "--all"
	if !untracked {
		all = "--update"
	}
	if _, err := g.out(ctx, "add", all); err != nil {
		return "", err
	}
	return g.line(ctx, "write-tree")
}

// copyIndex makes a copy of the index, for a git that shall not change it. The copy has the time of the original: from it git knows
// which files may have changed without their times telling.
func (r *Repo) copyIndex() (path string, drop func() error, err error) {
	dir, err := os.MkdirTemp("", "passbook-index-")
	if err != nil {
		return "", nil, err
	}
	drop = func() error { return os.RemoveAll(dir) }
	path = filepath.Join(dir, "index")
	original := filepath.Join(r.gitDir, "index")
	if err := copyWithTime(original, path); err != nil && !errors.Is(err, fs.ErrNotExist) { // no index: nothing is tracked
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

package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// CommitAt returns the commit that was checked out at a time, as the reflog records it. It is the checked-out commit if
// the reflog does not record it, or if the one that it records is not among its ancestors.
func (r *Repo) CommitAt(ctx context.Context, at time.Time) (commit string, err error) {
	defer wrap(&err, "find the commit of %s at %s", r.root, at)
	head, _, err := r.Head(ctx)
	if err != nil {
		return "", err
	}
	old, err := r.git.line(ctx, "rev-parse", "--verify", "--quiet", "HEAD@{"+strconv.FormatInt(at.Unix(), 10)+"}")
	if err != nil || old == "" {
		return head, nil //nolint:nilerr // there is no reflog
	}
	if _, err := r.git.output(ctx, "merge-base", "--is-ancestor", old, head); exitCode(err) == 1 {
		return head, nil
	} else if err != nil {
		return "", err
	}
	return old, nil
}

// ChangedSince lists the files of the checkout that are not ignored and have changed after a time: by the times of files,
// and for removed files by those of their folders and by the commits since.
func (r *Repo) ChangedSince(ctx context.Context, since time.Time) (changed []string, err error) {
	defer wrap(&err, "find what has changed in %s since %s", r.root, since)
	old, err := r.CommitAt(ctx, since)
	if err != nil {
		return nil, err
	}
	committed, err := r.changed(ctx, old, "HEAD")
	if err != nil {
		return nil, err
	}
	tracked, err := r.Tracked(ctx, "HEAD")
	if err != nil {
		return nil, err
	}
	dirt, err := r.Dirt(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(tracked, committed, dirt.Paths)
	slices.Sort(all)
	for _, path := range slices.Compact(all) {
		info, err := os.Lstat(filepath.Join(r.root, path))
		switch {
		case err == nil:
			if !info.IsDir() && info.ModTime().After(since) {
				changed = append(changed, path)
			}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		case slices.Contains(committed, path) || r.folderChanged(path, since):
			changed = append(changed, path)
		}
	}
	return changed, nil
}

// folderChanged reports whether the folder of a removed file has changed after a time.
func (r *Repo) folderChanged(path string, since time.Time) bool {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Lstat(filepath.Join(r.root, dir)); err == nil {
			return info.ModTime().After(since)
		}
		if dir == "." {
			return false
		}
	}
}

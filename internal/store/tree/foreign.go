package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/passbook-run/passbook/internal/store"
)

// Foreign returns the files below dir whose content none of the trees has at that path, by path. It writes nothing.
func Foreign(ctx context.Context, dir string, rules Rules, known []Tree) (paths []string, err error) {
	rules.track(known)
	sieve, err := rules.compile()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	sv := &saver{root: root, sieve: sieve}
	if err := sv.scan(ctx, "."); err != nil {
		return nil, fmt.Errorf("compare the files in %s: %w", dir, err)
	}
	var trees []map[string]Entry
	for _, t := range known {
		trees = append(trees, t.find())
	}
	for _, f := range sv.found {
		if f.Mode != ModeFolder && !slices.ContainsFunc(trees, func(t map[string]Entry) bool { return sv.same(f, t[f.Path]) }) {
			paths = append(paths, f.Path)
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// same reports whether a found file has the content of an entry.
func (sv *saver) same(f found, e Entry) bool {
	if f.Mode == ModeSymlink {
		return e.Mode == ModeSymlink && e.Link == f.Link
	}
	info, err := sv.root.Lstat(f.Path)
	if err != nil || !e.IsFile() || info.Size() != e.Size {
		return false
	}
	d, _, err := store.DigestFrom(func() (io.ReadCloser, error) { return openFile(sv.root, f.Path, info) })
	return err == nil && d == e.Digest
}

package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
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
	l := &layer{root: root, prev: &Cache{}, ours: finds(known)}
	for _, f := range sv.found {
		if f.Mode == ModeFolder {
			continue
		}
		info, err := root.Lstat(f.Path)
		foreign := err != nil
		if err == nil {
			foreign, err = l.foreign(f.Path, info)
		}
		if foreign || err != nil {
			paths = append(paths, f.Path)
		}
	}
	slices.Sort(paths)
	return paths, nil
}

func finds(trees []Tree) (all []map[string]Entry) {
	for _, t := range trees {
		all = append(all, t.find())
	}
	return all
}

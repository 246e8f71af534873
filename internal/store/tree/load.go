package tree

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/passbook-run/passbook/internal/store"
)

// Load reads a tree. A node that is missing, damaged, of another version, or that contains paths outside the tree
// is an error.
func Load(ctx context.Context, s *store.Store, d store.Digest) (Tree, error) {
	t, err := load(ctx, s, d, maxEntries)
	if err != nil {
		return Tree{}, fmt.Errorf("load tree %s: %w", d, err)
	}
	return t, nil
}

// place is a folder whose node is to be read.
type place struct {
	path string
	node store.Digest
}

// load reads the nodes of each level concurrently.
func load(ctx context.Context, s *store.Store, root store.Digest, most int) (Tree, error) {
	t := Tree{Entries: []Entry{}}
	for level := []place{{".", root}}; len(level) > 0; {
		nodes, err := fetch(ctx, s, level)
		if err != nil {
			return Tree{}, err
		}
		var next []place
		for _, p := range level {
			children, err := decodeNode(p.path, nodes[p.node])
			if err != nil {
				return Tree{}, fmt.Errorf("folder %q: blob %s: %w", p.path, p.node, err)
			}
			for _, c := range children {
				t.Entries = append(t.Entries, c.Entry)
				if c.Mode == ModeFolder {
					next = append(next, place{c.Path, c.node})
				}
			}
			if err := t.checkSize(most); err != nil {
				return Tree{}, err
			}
		}
		level = next
	}
	t = treeOf(t.Entries)
	return t, t.check()
}

// fetch returns the nodes of places.
func fetch(ctx context.Context, s *store.Store, places []place) (map[store.Digest][]byte, error) {
	nodes := map[store.Digest][]byte{}
	var mu sync.Mutex
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(readers)
	asked := map[store.Digest]bool{}
	for _, p := range places {
		if asked[p.node] {
			continue
		}
		asked[p.node] = true
		all.Go(func() error {
			data, err := s.Get(ctx, p.node)
			if err != nil {
				return fmt.Errorf("folder %q: %w", p.path, err)
			}
			mu.Lock()
			defer mu.Unlock()
			nodes[p.node] = data
			return nil
		})
	}
	return nodes, all.Wait()
}

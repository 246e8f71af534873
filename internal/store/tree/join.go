package tree

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"github.com/passbook-run/passbook/internal/store"
)

// Part is a stored tree that becomes a folder of another tree.
type Part struct {
	Folder string // a name without slashes
	Digest store.Digest
}

// Join stores a tree with a folder for each part. The content of the parts is in the store already.
func Join(ctx context.Context, s *store.Store, parts []Part) (Saved, error) {
	var all Tree
	for _, p := range parts {
		t, err := Load(ctx, s, p.Digest)
		if err != nil {
			return Saved{}, fmt.Errorf("join the trees: folder %s: %w", p.Folder, err)
		}
		all.Entries = append(all.Entries, Entry{Path: p.Folder, Mode: ModeFolder, Perm: fs.FileMode(0o755)})
		for _, e := range t.Entries {
			e.Path = path.Join(p.Folder, e.Path)
			all.Entries = append(all.Entries, e)
		}
	}
	all = treeOf(all.Entries)
	if err := all.check(); err != nil {
		return Saved{}, fmt.Errorf("join the trees: %w", err)
	}
	root, nodes := all.nodes()
	if _, err := s.Put(ctx, nodes[root]); err != nil {
		return Saved{}, fmt.Errorf("join the trees: %w", err)
	}
	return Saved{Digest: root, Tree: all}, nil
}

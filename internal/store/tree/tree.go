// Package tree stores working trees: each file's content is a blob, and so is the list of each folder's content.
// The digest of the root's list is the tree's digest: the same names, modes and contents have the same digest on
// every machine.
//
// A stored tree can be checked out exactly, after its digests are verified. Nothing outside the folder is read or
// written, whatever its symlinks and blobs contain.
//
// Owners, times, hard links, extended attributes, and mode bits beyond rwxrwxrwx are not stored. Callers must
// prevent concurrent writes to the folder.
package tree

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/store"
)

// Mode is the type of an entry.
type Mode string

// The modes. An executable is a file that its owner may execute.
const (
	ModeFile       Mode = "file"
	ModeExecutable Mode = "executable"
	ModeSymlink    Mode = "symlink"
	ModeFolder     Mode = "folder"
)

// Entry is one file, symlink or folder of a tree.
type Entry struct {
	Path   string       // below the tree's root, with slashes; any bytes but NUL
	Mode   Mode         //
	Perm   fs.FileMode  // rwxrwxrwx; 0 for a symlink
	Size   int64        // bytes of a file's content
	Digest store.Digest // of a file's content
	Link   string       // target of a symlink; any bytes but NUL
}

// IsFile reports whether the entry has content.
func (e Entry) IsFile() bool { return e.Mode == ModeFile || e.Mode == ModeExecutable }

// Tree is a working tree. Every folder below its root has an entry, even if empty.
type Tree struct {
	Entries []Entry // by path, in the order of its bytes
}

// treeOf returns the tree of entries in any order. It sorts them.
func treeOf(entries []Entry) Tree {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return Tree{Entries: entries}
}

// Digest returns the tree's digest: that of its root's node in the store.
func (t Tree) Digest() store.Digest {
	root, _ := t.nodes()
	return root
}

// find returns the entries by path.
func (t Tree) find() map[string]Entry {
	all := make(map[string]Entry, len(t.Entries))
	for _, e := range t.Entries {
		all[e.Path] = e
	}
	return all
}

// Package tree keeps whole working trees in a store: every file's content is a
// blob, and so is a list of what is in each folder. The digest of the root's
// list is the tree's: the same names, modes and contents give the same digest on
// every machine.
//
// A tree that was saved can be laid down again exactly, and what is laid down
// was checked against its digests first. Nothing outside the folder in question
// is read or written, whatever its symlinks and the blobs say.
//
// It keeps no owners, times, hard links, extended attributes, and no bits of
// modes beyond rwxrwxrwx. It does not arrange who may write to the folder
// meanwhile.
package tree

import (
	"io/fs"

	"github.com/passbook-run/passbook/store"
)

// Mode is what an entry is.
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
	Perm   fs.FileMode  // rwxrwxrwx; 0 of a symlink
	Size   int64        // bytes of a file's content
	Digest store.Digest // of a file's content
	Link   string       // target of a symlink; any bytes but NUL
}

// IsFile says whether the entry has content.
func (e Entry) IsFile() bool { return e.Mode == ModeFile || e.Mode == ModeExecutable }

// Tree is a whole working tree. Every folder below its root has an entry, empty
// ones too.
type Tree struct {
	Entries []Entry // by path, in the order of its bytes
}

// Digest is the tree's digest: that of its root's node in the store.
func (t Tree) Digest() store.Digest {
	root, _ := t.nodes()
	return root
}

// find gives the entries by path.
func (t Tree) find() map[string]Entry {
	all := make(map[string]Entry, len(t.Entries))
	for _, e := range t.Entries {
		all[e.Path] = e
	}
	return all
}

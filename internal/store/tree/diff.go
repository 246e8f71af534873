package tree

import (
	"cmp"
	"slices"

	"github.com/passbook-run/passbook/internal/store"
)

// Kind is the kind of a change between two trees.
type Kind string

const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed" // other content, target or type
	Moded   Kind = "mode"    // other permissions only
	Renamed Kind = "renamed" // the same content under a path that was free
)

// Change is one difference between two trees.
type Change struct {
	Kind   Kind
	Path   string // current path; for a removal, the old one
	From   string // old path of a rename
	Before Entry  // zero if added
	After  Entry  // zero if removed
}

// Diff returns the changes from one tree to the other, by path. Of several files with the same content, the first
// removed one matches the first added one. Empty files are not renamed.
func Diff(from, to Tree) []Change {
	before, after := from.find(), to.find()
	gone := map[store.Digest][]Entry{}
	var out []Change
	for _, e := range from.Entries {
		if _, stays := after[e.Path]; !stays && e.IsFile() && e.Size > 0 {
			gone[e.Digest] = append(gone[e.Digest], e)
		}
	}
	moved := map[string]bool{}
	for _, e := range to.Entries {
		old, was := before[e.Path]
		switch same := gone[e.Digest]; {
		case was && old != e:
			out = append(out, Change{Kind: changeOf(old, e), Path: e.Path, Before: old, After: e})
		case !was && e.IsFile() && len(same) > 0:
			out = append(out, Change{Kind: Renamed, Path: e.Path, From: same[0].Path, Before: same[0], After: e})
			moved[same[0].Path], gone[e.Digest] = true, same[1:]
		case !was:
			out = append(out, Change{Kind: Added, Path: e.Path, After: e})
		}
	}
	for _, e := range from.Entries {
		if _, stays := after[e.Path]; !stays && !moved[e.Path] {
			out = append(out, Change{Kind: Removed, Path: e.Path, Before: e})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

func changeOf(before, after Entry) Kind {
	if before.kind() == after.kind() && before.Digest == after.Digest && before.Link == after.Link {
		return Moded
	}
	return Changed
}

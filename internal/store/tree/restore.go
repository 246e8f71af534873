package tree

import (
	"cmp"
	"maps"
	"slices"

	"github.com/passbook-run/passbook/internal/store"
)

// Restore returns the tree after with the protected paths as they are in before, and what that undoes: the changes from
// the returned tree to after. protected reports whether a path itself is protected; all that is below a protected
// folder is, too. What is in the way of a protected path is removed.
func Restore(before, after Tree, protected func(path string, folder bool) bool) (Tree, []Change) {
	kept := map[string]Entry{}
	for _, e := range unprotected(after, protected) {
		kept[e.Path] = e
	}
	was := before.find()
	for path := range protectedPaths(before, protected) {
		for dir := parent(path); dir != "."; dir = parent(dir) {
			if kept[dir].Mode != ModeFolder {
				kept[dir] = was[dir]
			}
		}
		kept[path] = was[path]
	}
	t := treeOf(slices.Collect(maps.Values(kept)))
	return t, undone(before, t, after)
}

// protectedPaths returns the protected paths of a tree, with all that is below protected folders.
func protectedPaths(t Tree, protected func(path string, folder bool) bool) map[string]bool {
	found := map[string]bool{}
	for _, e := range t.Entries { // a folder comes before its content
		if found[parent(e.Path)] || protected(e.Path, e.Mode == ModeFolder) {
			found[e.Path] = true
		}
	}
	return found
}

func unprotected(t Tree, protected func(path string, folder bool) bool) []Entry {
	found := protectedPaths(t, protected)
	return slices.DeleteFunc(slices.Clone(t.Entries), func(e Entry) bool { return found[e.Path] })
}

// undone returns the changes that led from the restored tree to after. A restored file whose content is in after under
// a path that is not in before was renamed.
func undone(before, restored, after Tree) []Change {
	was, fresh := before.find(), map[store.Digest]Entry{}
	for _, e := range after.Entries {
		if _, old := was[e.Path]; !old && e.IsFile() && e.Size > 0 {
			fresh[e.Digest] = e
		}
	}
	all := Diff(restored, after)
	for i, c := range all {
		if to, moved := fresh[c.Before.Digest]; c.Kind == Removed && c.Before.IsFile() && moved {
			all[i] = Change{Kind: Renamed, Path: to.Path, From: c.Path, Before: c.Before, After: to}
		}
	}
	files := slices.DeleteFunc(slices.Clone(all), func(c Change) bool {
		return c.Kind == Added && c.After.Mode == ModeFolder || c.Kind == Removed && c.Before.Mode == ModeFolder
	})
	if len(files) == 0 {
		return all
	}
	slices.SortFunc(files, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return files
}

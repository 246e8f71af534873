package tree

import (
	"io/fs"
	"maps"
	"slices"
)

// Merged is a three-way merge of trees, as far as no content has to be merged.
type Merged struct {
	Tree Tree     // without the paths in Both
	Both []string // paths that both sides changed, each in another way
}

// Merge merges the changes from base to theirs into ours. If both sides changed a path, Both lists all paths that
// either side changed: renames need them.
func Merge(base, ours, theirs Tree) Merged {
	b, o, t := base.find(), ours.find(), theirs.find()
	paths := map[string]bool{}
	for _, all := range []map[string]Entry{b, o, t} {
		for p := range all {
			paths[p] = true
		}
	}
	merged, changed, conflict := map[string]Entry{}, []string(nil), false
	for p := range paths {
		mine, its := o[p] != b[p], t[p] != b[p]
		if mine || its {
			changed = append(changed, p)
		}
		e := o[p]
		switch {
		case its && !mine:
			e = t[p]
		case its && mine && o[p] != t[p]:
			folders := o[p].Mode == ModeFolder && t[p].Mode == ModeFolder
			conflict = conflict || !folders
		case its && mine && b[p].IsFile() && o[p].Mode == "":
			conflict = true // both may have renamed it
		}
		if e.Mode != "" {
			merged[p] = e
		}
	}
	slices.Sort(changed)
	if conflict || unrooted(merged) {
		kept := map[string]Entry{}
		for p, e := range merged {
			if !slices.Contains(changed, p) {
				kept[p] = e
			}
		}
		return Merged{Tree: listed(kept), Both: changed}
	}
	return Merged{Tree: listed(merged)}
}

// WithEdits returns a tree with the edits in found. A path is edited if it differs from that of the tree and of all
// others that found may consist of. Edits that do not fit into the tree, such as a file below a file, make it found.
func WithEdits(t, found Tree, others []Tree) Tree {
	edited, now, known := t.find(), found.find(), []map[string]Entry{t.find()}
	for _, o := range others {
		known = append(known, o.find())
	}
	for _, all := range slices.Concat(known, []map[string]Entry{now}) {
		for p := range all {
			if slices.ContainsFunc(known, func(of map[string]Entry) bool { return of[p] == now[p] }) {
				continue
			}
			if edited[p] = now[p]; now[p].Mode == "" {
				delete(edited, p)
			}
		}
	}
	if unrooted(edited) {
		return found
	}
	return listed(edited)
}

// unrooted reports whether a path is below something that is not a folder.
func unrooted(all map[string]Entry) bool {
	for p := range all {
		for dir := parent(p); dir != "."; dir = parent(dir) {
			if e := all[dir]; e.Mode != "" && e.Mode != ModeFolder {
				return true
			}
		}
	}
	return false
}

// listed returns the tree of entries, with the folders that they need.
func listed(all map[string]Entry) Tree {
	for p := range all {
		for dir := parent(p); dir != "."; dir = parent(dir) {
			if all[dir].Mode == "" {
				all[dir] = Entry{Path: dir, Mode: ModeFolder, Perm: folderPerm}
			}
		}
	}
	return treeOf(slices.Collect(maps.Values(all)))
}

const folderPerm fs.FileMode = 0o755

// With returns the tree with more entries, which replace those of the same path.
func (t Tree) With(entries ...Entry) Tree {
	all := t.find()
	for _, e := range entries {
		all[e.Path] = e
	}
	return listed(all)
}

// At returns the entry of a path.
func (t Tree) At(path string) (Entry, bool) {
	i := slices.IndexFunc(t.Entries, func(e Entry) bool { return e.Path == path })
	if i < 0 {
		return Entry{}, false
	}
	return t.Entries[i], true
}

package workspace

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// MaxFiles is the maximum number of changed files listed in an event.
const MaxFiles = 20

// trees loads stored trees.
func trees(ctx context.Context, s *store.Store, stored ...run.Blob) (all []tree.Tree, err error) {
	for _, b := range stored {
		t, err := tree.Load(ctx, s, store.Digest(b.Digest))
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// Compare returns how two stored trees differ.
func Compare(ctx context.Context, s *store.Store, from, to run.Blob) (*run.WorkspaceUpdated, error) {
	of, err := trees(ctx, s, from, to)
	if err != nil {
		return nil, err
	}
	ev := &run.WorkspaceUpdated{Tree: to}
	for _, c := range tree.Diff(of[0], of[1]) {
		ev.Files = append(ev.Files, FileChange(c))
	}
	ev.Changed = len(ev.Files)
	if ev.Changed <= MaxFiles {
		return ev, nil
	}
	raw, err := json.Marshal(ev.Files)
	if err != nil {
		return nil, err
	}
	list, err := blobs.Put(ctx, s, raw)
	ev.Files, ev.List = ev.Files[:MaxFiles], &list
	return ev, err
}

// FilesSince returns the files of a tree that differ from those of another.
func FilesSince(ctx context.Context, s *store.Store, from, to run.Blob) (files []git.File, err error) {
	of, err := trees(ctx, s, from, to)
	if err != nil {
		return nil, err
	}
	for _, c := range tree.Diff(of[0], of[1]) {
		for _, gone := range []string{c.From, c.Path} {
			if e, ok := of[1].At(gone); gone != "" && (!ok || e.Mode == tree.ModeFolder) {
				files = append(files, git.File{Path: gone})
			}
		}
		if c.After.Mode != "" && c.After.Mode != tree.ModeFolder {
			files = append(files, File(ctx, s, c.After))
		}
	}
	return slices.DeleteFunc(files, func(f git.File) bool {
		e, was := of[0].At(f.Path)
		return f.Mode == "" && (!was || e.Mode == tree.ModeFolder)
	}), nil
}

// Protect returns the tree after with the protected paths as they are in before, and what that undoes.
func Protect(ctx context.Context, s *store.Store, before, after run.Blob,
	protected func(name string, folder bool) bool) (run.Blob, []tree.Change, error) {
	if before.Digest == after.Digest {
		return after, nil, nil
	}
	of, err := trees(ctx, s, before, after)
	if err != nil {
		return after, nil, err
	}
	restored, undone := tree.Restore(of[0], of[1], protected)
	if len(undone) == 0 {
		return after, nil, nil
	}
	return Blob(tree.Saved{Digest: restored.Digest(), Tree: restored}), undone, tree.Put(ctx, s, restored)
}

// FileChange describes a change for an event.
func FileChange(c tree.Change) run.FileChange {
	return run.FileChange{
		Path: strings.ToValidUTF8(c.Path, "�"), Old: strings.ToValidUTF8(c.From, "�"), Kind: string(c.Kind),
		Before: string(c.Before.Digest), After: string(c.After.Digest),
	}
}

// Hidden lists the files of a tree that its ignore rules hide, and that those of the tree before did not.
func Hidden(ctx context.Context, s *store.Store, before, after run.Blob) ([]string, error) {
	of, err := trees(ctx, s, before, after)
	if err != nil {
		return nil, err
	}
	was, err := tree.ReadIgnores(ctx, s, of[0])
	if err != nil {
		return nil, err
	}
	is, err := tree.ReadIgnores(ctx, s, of[1])
	if err != nil || maps.Equal(was.Files, is.Files) {
		return nil, err
	}
	return of[1].Hidden(was, is), nil
}

// Outside lists the files that differ between two trees, and that the paths do not cover.
func Outside(ctx context.Context, s *store.Store, before, after run.Blob, paths pipeline.Paths) (names []string, err error) {
	of, err := trees(ctx, s, before, after)
	if err != nil {
		return nil, err
	}
	for _, c := range tree.Diff(of[0], of[1]) {
		folder := c.After.Mode == tree.ModeFolder || c.Before.Mode == tree.ModeFolder
		for _, name := range []string{c.Path, c.From} {
			if name != "" && !folder && !paths.Covers(name, false) {
				names = append(names, strings.ToValidUTF8(name, "�"))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Merge merges the changes from base to lane into a stored tree. git merges contents and renames, and decides what
// conflicts.
func Merge(ctx context.Context, s *store.Store, base, into, lane run.Blob) (run.Blob, []string, error) {
	sides, err := trees(ctx, s, base, into, lane)
	if err != nil {
		return run.Blob{}, nil, err
	}
	merged := tree.Merge(sides[0], sides[1], sides[2])
	if merged.Both != nil {
		conflicts, err := mergeContents(ctx, s, sides, &merged)
		if err != nil || len(conflicts) > 0 {
			return run.Blob{}, conflicts, err
		}
	}
	if err := tree.Put(ctx, s, merged.Tree); err != nil {
		return run.Blob{}, nil, err
	}
	return Blob(tree.Saved{Digest: merged.Tree.Digest(), Tree: merged.Tree}), nil, nil
}

// mergeContents has git merge the paths that both sides changed, with what they were renamed from or to.
func mergeContents(ctx context.Context, s *store.Store, of []tree.Tree, merged *tree.Merged) ([]string, error) {
	var sides [3][]git.File
	known := map[tree.Entry]tree.Entry{} // by content, with its permissions
	for i, t := range of {
		for _, path := range merged.Both {
			e, ok := t.At(path)
			if !ok || e.Mode == tree.ModeFolder {
				continue
			}
			sides[i] = append(sides[i], File(ctx, s, e))
			known[contentOf(e)] = e
		}
	}
	out, err := git.MergeTrees(ctx, sides[0], sides[1], sides[2])
	if err != nil || len(out.Conflicts) > 0 {
		return out.Conflicts, err
	}
	var entries []tree.Entry
	for _, f := range out.Files {
		e, err := newEntry(ctx, s, f)
		if err != nil {
			return nil, err
		}
		if was, ok := known[contentOf(e)]; ok {
			e = was
		}
		e.Path = f.Path
		entries = append(entries, e)
	}
	merged.Tree = merged.Tree.With(entries...)
	return nil, nil
}

// contentOf returns an entry without what git does not merge.
func contentOf(e tree.Entry) tree.Entry {
	e.Path, e.Perm = "", 0
	return e
}

// WithFiles returns a stored tree with the files of a merge. Those without a mode are deleted.
func WithFiles(ctx context.Context, s *store.Store, of run.Blob, files []git.File) (run.Blob, error) {
	all, err := trees(ctx, s, of)
	if err != nil {
		return run.Blob{}, err
	}
	t, gone := all[0], map[string]bool{}
	var entries []tree.Entry
	for _, f := range files {
		if f.Mode == "" {
			gone[f.Path] = true
			continue
		}
		content, err := f.Read()
		if err != nil {
			return run.Blob{}, err
		}
		e, err := newEntry(ctx, s, git.Merged{Path: f.Path, Mode: f.Mode, Content: content})
		if err != nil {
			return run.Blob{}, err
		}
		if was, ok := t.At(f.Path); ok && was.Mode == e.Mode && was.Perm != 0 {
			e.Perm = was.Perm
		}
		e.Path = f.Path
		entries = append(entries, e)
	}
	t.Entries = slices.DeleteFunc(slices.Clone(t.Entries), func(e tree.Entry) bool { return gone[e.Path] })
	t = t.With(entries...)
	if err := tree.Put(ctx, s, t); err != nil {
		return run.Blob{}, err
	}
	return Blob(tree.Saved{Digest: t.Digest(), Tree: t}), nil
}

// newEntry stores a merged file.
func newEntry(ctx context.Context, s *store.Store, f git.Merged) (tree.Entry, error) {
	if f.Mode == git.ModeSymlink {
		return tree.Entry{Mode: tree.ModeSymlink, Link: string(f.Content)}, nil
	}
	b, err := blobs.Put(ctx, s, f.Content)
	e := tree.Entry{Mode: tree.ModeFile, Perm: fs.FileMode(0o644), Size: int64(len(f.Content)),
		Digest: store.Digest(b.Digest)}
	if f.Mode == git.ModeExecutable {
		e.Mode, e.Perm = tree.ModeExecutable, 0o755
	}
	return e, err
}

// Package blame finds which of a sequence of trees last changed each file, and each line of a text.
package blame

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
)

// File is a file or symlink of the last tree or an earlier one.
type File struct {
	Path    string
	Tree    int       // index of the tree that last changed it
	Kind    tree.Kind // kind of that change; empty: unchanged since the first tree
	From    string    // old path of a rename
	To      string    // new path, if it was renamed
	Deleted bool      // not in the last tree and not renamed
}

// Files returns all paths of the trees, sorted.
func Files(trees []tree.Tree) []File {
	known := map[string]File{}
	if len(trees) > 0 {
		for _, e := range trees[0].Entries {
			if e.Mode != tree.ModeFolder {
				known[e.Path] = File{Path: e.Path}
			}
		}
	}
	for i := 1; i < len(trees); i++ {
		for _, c := range tree.Diff(trees[i-1], trees[i]) {
			kind := kindOf(c)
			if kind == "" {
				continue
			}
			if kind == tree.Renamed {
				known[c.From] = File{Path: c.From, Tree: i, Kind: kind, To: c.Path}
			}
			known[c.Path] = File{Path: c.Path, Tree: i, Kind: kind, From: c.From, Deleted: kind == tree.Removed}
		}
	}
	out := make([]File, 0, len(known))
	for _, f := range known {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// kindOf returns the kind of change of a path as a file; empty: it is a folder. A file replaced by a folder is
// removed, and vice versa.
func kindOf(c tree.Change) tree.Kind {
	was, is := c.Before.IsFile() || c.Before.Mode == tree.ModeSymlink, c.After.IsFile() ||
		c.After.Mode == tree.ModeSymlink
	switch {
	case !was && !is:
		return ""
	case !was:
		return tree.Added
	case !is:
		return tree.Removed
	}
	return c.Kind
}

// Line is one line of a text.
type Line struct {
	Text string // without its line feed
	Tree int    // index of the tree that added it
}

// Text is a file of the last tree by lines.
type Text struct {
	Lines  []Line
	Binary bool     // not a text, or too large: no lines
	Paths  []string // former names, newest first
}

// largest is the maximum size of a text in bytes.
const largest = 8 << 20

// Lines follows a file of the last tree back through edits and renames. A file that was renamed and edited in one
// step is recognized if at least half of its lines are unchanged. fs.ErrNotExist: no such file in the last tree.
func Lines(ctx context.Context, s *store.Store, trees []tree.Tree, path string) (Text, error) {
	b := blamer{ctx: ctx, store: s, trees: trees}
	steps, err := b.follow(path)
	if err != nil {
		return Text{}, fmt.Errorf("blame %s: %w", path, err)
	}
	return b.attribute(steps)
}

type blamer struct {
	ctx   context.Context
	store *store.Store
	trees []tree.Tree
}

// content is the content of a file since one tree.
type content struct {
	tree  int
	entry tree.Entry
}

// follow returns the contents of a file, newest first.
func (b blamer) follow(path string) ([]content, error) {
	at := len(b.trees) - 1
	now, ok := entry(b.trees[at], path)
	if !ok {
		return nil, fs.ErrNotExist
	}
	var out []content
	for ; at > 0; at-- {
		before, ok := entry(b.trees[at-1], now.Path)
		if !ok {
			var err error
			if before, ok, err = b.origin(at, now); err != nil {
				return nil, err
			}
		}
		if !ok {
			break
		}
		if before.Digest != now.Digest || before.Path != now.Path {
			out = append(out, content{at, now})
		}
		now = before
	}
	return append(out, content{at, now}), nil
}

func entry(t tree.Tree, path string) (tree.Entry, bool) {
	i, ok := slices.BinarySearchFunc(t.Entries, path,
		func(e tree.Entry, path string) int { return strings.Compare(e.Path, path) })
	if !ok || t.Entries[i].Mode == tree.ModeFolder {
		return tree.Entry{}, false
	}
	return t.Entries[i], true
}

// origin returns the origin of a file that is new in a tree: a removed file with the same content, or the removed
// text that has most lines in common.
func (b blamer) origin(at int, now tree.Entry) (best tree.Entry, found bool, err error) {
	changes := tree.Diff(b.trees[at-1], b.trees[at])
	for _, c := range changes {
		if c.Path == now.Path && c.Kind == tree.Renamed {
			return c.Before, true, nil
		}
	}
	text, ok, err := b.read(now)
	if err != nil || !ok || len(text) == 0 {
		return best, false, err
	}
	most := (len(text) + 1) / 2
	for _, c := range changes {
		if c.Kind != tree.Removed || !c.Before.IsFile() {
			continue
		}
		old, ok, err := b.read(c.Before)
		if err != nil {
			return best, false, err
		}
		if !ok || len(old) > 2*len(text)+1 {
			continue
		}
		if same := common(old, text); same >= most {
			best, found, most = c.Before, true, same+1
		}
	}
	return best, found, nil
}

// read returns the lines of a file; ok is false if it is not a text.
func (b blamer) read(e tree.Entry) (lines []string, ok bool, err error) {
	if !e.IsFile() || e.Size > largest {
		return nil, false, nil
	}
	data, err := b.store.Get(b.ctx, e.Digest)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", e.Path, err)
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, false, nil
	}
	if len(data) == 0 {
		return nil, true, nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), true, nil
}

// attribute goes from the oldest to the newest content: unchanged lines keep their tree.
func (b blamer) attribute(steps []content) (Text, error) {
	var out Text
	for i, c := range slices.Backward(steps) {
		lines, ok, err := b.read(c.entry)
		if err != nil {
			return Text{}, err
		}
		if !ok {
			if i == 0 {
				return Text{Binary: true}, nil
			}
			out.Lines = nil
			continue
		}
		out.Lines = carry(out.Lines, lines, c.tree)
	}
	for _, c := range steps[1:] {
		if name := c.entry.Path; name != steps[0].entry.Path && !slices.Contains(out.Paths, name) {
			out.Paths = append(out.Paths, name)
		}
	}
	return out, nil
}

// carry attributes the lines of the next content: common lines keep their tree, others get this one.
func carry(before []Line, next []string, at int) []Line {
	old := make([]string, len(before))
	for i, l := range before {
		old[i] = l.Text
	}
	out := make([]Line, len(next))
	for i, from := range match(old, next) {
		out[i] = Line{Text: next[i], Tree: at}
		if from >= 0 {
			out[i].Tree = before[from].Tree
		}
	}
	return out
}

// common returns how many lines of next are in old, in order.
func common(old, next []string) int {
	n := 0
	for _, from := range match(old, next) {
		if from >= 0 {
			n++
		}
	}
	return n
}

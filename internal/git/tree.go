package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
)

// Modes of files, as in git.
const (
	ModeFile       = "100644"
	ModeExecutable = "100755"
	ModeSymlink    = "120000" // its content is the target
	modeSubmodule  = "160000"
)

// File is a file as it was judged.
type File struct {
	Path    string
	Mode    string // [ModeFile], [ModeExecutable] or [ModeSymlink]; "": the file is removed
	Content func() (io.ReadCloser, error)
}

// Bytes is the content of a file in memory.
func Bytes(data []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}

// Read reads the whole content.
func (f File) Read() ([]byte, error) {
	from, err := f.Content()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(from)
	return data, errors.Join(err, from.Close())
}

// entry is a file of a tree.
type entry struct{ mode, id, path string }

// maxPathArgs is the maximum number of path arguments per git command: even with the longest paths they fit the
// system's limit.
const maxPathArgs = 100

// entries returns the files of a commit, in order of path.
func (r *Repo) entries(ctx context.Context, commit string) (list []entry, err error) {
	return r.list(ctx, "-r", commit)
}

// entriesAt returns the files of a commit at these paths. If they are few, git reads only their folders.
func (r *Repo) entriesAt(ctx context.Context, commit string, paths []string) (at map[string]entry, err error) {
	var list []entry
	switch {
	case len(paths) > maxPathArgs:
		list, err = r.entries(ctx, commit)
	case len(paths) > 0:
		list, err = r.list(ctx, append([]string{commit, "--"}, paths...)...)
	}
	found := make(map[string]entry, len(list))
	for _, e := range list {
		found[e.path] = e
	}
	at = map[string]entry{}
	for _, p := range paths {
		if e, ok := found[p]; ok {
			at[p] = e
		}
	}
	return at, err
}

// list runs git ls-tree and leaves out folders.
func (r *Repo) list(ctx context.Context, args ...string) (list []entry, err error) {
	out, err := r.git.output(ctx, append([]string{"ls-tree", "-z", "--full-tree"}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("list the files of a commit: %w", err)
	}
	for _, line := range splitNUL(out) {
		mode, rest, _ := strings.Cut(line, " ")
		kind, rest, _ := strings.Cut(rest, " ")
		id, file, ok := strings.Cut(rest, "\t")
		if !ok {
			return nil, fmt.Errorf("list the files of a commit: unexpected %q", line)
		}
		if kind != "tree" {
			list = append(list, entry{mode, id, file})
		}
	}
	return list, nil
}

// attributesFile is the name of files that convert others.
const attributesFile = ".gitattributes"

// attributesFor returns the .gitattributes of a commit that can apply to files.
func (r *Repo) attributesFor(ctx context.Context, commit string, files []File) ([]entry, error) {
	names := map[string]bool{}
	for _, f := range files {
		for dir, below := path.Dir(f.Path), true; below; dir = path.Dir(dir) {
			name := path.Join(dir, attributesFile)
			below = dir != "." && !names[name]
			names[name] = true
		}
	}
	at, err := r.entriesAt(ctx, commit, slices.Sorted(maps.Keys(names)))
	return onlyAttributes(maps.Values(at)), err
}

func onlyAttributes(list iter.Seq[entry]) (attributes []entry) {
	for e := range list {
		if path.Base(e.path) == attributesFile && (e.mode == ModeFile || e.mode == ModeExecutable) {
			attributes = append(attributes, e)
		}
	}
	return attributes
}

// Tracked returns the files of a commit: paths below the root, with slashes.
func (r *Repo) Tracked(ctx context.Context, commit string) ([]string, error) {
	list, err := r.entries(ctx, commit)
	var paths []string
	for _, e := range list {
		paths = append(paths, e.path)
	}
	return paths, err
}

// changed returns the files that differ between two commits or trees.
func (r *Repo) changed(ctx context.Context, from, to string) ([]string, error) {
	out, err := r.git.output(ctx, "diff-tree", "-r", "-z", "--name-only", "--no-renames", from, to, "--")
	return splitNUL(out), err
}

// setEntries sets files of an index, and removes those without a mode.
func (g git) setEntries(ctx context.Context, list []entry) error {
	if len(list) == 0 {
		return nil
	}
	var lines strings.Builder
	for _, removed := range []bool{true, false} { // a file may be where a folder was
		for _, e := range list {
			switch {
			case removed != (e.mode == ""):
			case removed:
				fmt.Fprintf(&lines, "0 %040d\t%s\x00", 0, e.path)
			default:
				fmt.Fprintf(&lines, "%s %s\t%s\x00", e.mode, e.id, e.path)
			}
		}
	}
	_, err := g.run(ctx, strings.NewReader(lines.String()), "update-index", "-z", "--index-info")
	return err
}

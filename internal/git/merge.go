package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// MergeFile is a file, or a symlink with its target as content.
type MergeFile struct {
	Path    string
	Mode    string // as in git: 100644, 100755 or 120000
	Content []byte
}

// Merging is a merge that has no conflict, or the paths of its conflicts.
type Merging struct {
	Files     []MergeFile
	Conflicts []string
}

// MergeTrees merges the changes from base to theirs into ours, in a temporary repository. It needs git 2.38.
func MergeTrees(ctx context.Context, base, ours, theirs []MergeFile) (m Merging, err error) {
	dir, err := tempFolder("passbook-merge-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if m, err = (git{dir: dir}).merge(ctx, base, ours, theirs); err != nil {
		return m, fmt.Errorf("merge trees: %w", err)
	}
	return m, nil
}

func (g git) merge(ctx context.Context, base, ours, theirs []MergeFile) (m Merging, err error) {
	if err := g.initPlain(ctx); err != nil {
		return m, err
	}
	var in bytes.Buffer
	for i, files := range [][]MergeFile{base, ours, theirs} {
		importFiles(&in, i, files)
	}
	if _, err := g.run(ctx, in.Bytes(), "fast-import", "--quiet"); err != nil {
		return m, err
	}
	out, err := g.output(ctx, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", "refs/heads/side-1",
		"refs/heads/side-2")
	fields := splitNUL(out)
	switch {
	case exitCode(err) == 1 && len(fields) > 0:
		m.Conflicts = slices.DeleteFunc(fields[1:], func(p string) bool { return p == "" })
		slices.Sort(m.Conflicts)
		m.Conflicts = slices.Compact(m.Conflicts)
		return m, nil
	case err != nil:
		return m, err
	case len(fields) == 0:
		return m, errors.New("git printed no tree")
	}
	m.Files, err = g.filesOf(ctx, fields[0])
	return m, err
}

// importFiles writes a commit of files for git fast-import, after that of side 0.
func importFiles(in *bytes.Buffer, side int, files []MergeFile) {
	fmt.Fprintf(in, "commit refs/heads/side-%d\nmark :%d\ncommitter passbook <passbook@localhost> 1000000000 +0000\n"+
		"data 0\n\n", side, side+1)
	if side > 0 {
		in.WriteString("from :1\n")
	}
	in.WriteString("deleteall\n")
	for _, f := range files {
		fmt.Fprintf(in, "M %s inline %s\ndata %d\n", f.Mode, quoted(f.Path), len(f.Content))
		in.Write(f.Content)
		in.WriteByte('\n')
	}
}

// filesOf returns the files of a tree.
func (g git) filesOf(ctx context.Context, tree string) (files []MergeFile, err error) {
	list, err := (&Repo{git: g}).entries(ctx, tree)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var ids strings.Builder
	for _, e := range list {
		ids.WriteString(e.id + "\n")
	}
	out, err := g.run(ctx, []byte(ids.String()), "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	for _, e := range list { // <id> blob <size>\n<content>\n
		about, rest, _ := bytes.Cut(out, []byte("\n"))
		f := strings.Fields(string(about))
		if len(f) != 3 {
			return nil, fmt.Errorf("read file %q: unexpected %q", e.path, about)
		}
		size, err := strconv.Atoi(f[2])
		if err != nil || size >= len(rest) {
			return nil, fmt.Errorf("read file %q: unexpected %q", e.path, about)
		}
		files = append(files, MergeFile{Path: e.path, Mode: e.mode, Content: rest[:size:size]})
		out = rest[size+1:]
	}
	return files, nil
}

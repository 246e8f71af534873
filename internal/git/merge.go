package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Merged is a file of a merge; the content of a symlink is its target.
type Merged struct {
	Path    string
	Mode    string
	Content []byte
}

// Merging is a merge that has no conflict, or the paths of its conflicts.
type Merging struct {
	Files     []Merged
	Conflicts []string
}

// MergeTrees merges the changes from base to theirs into ours, in a temporary repository. It needs git 2.38.
func MergeTrees(ctx context.Context, base, ours, theirs []File) (m Merging, err error) {
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

func (g git) merge(ctx context.Context, base, ours, theirs []File) (m Merging, err error) {
	if err := g.importSides(ctx, base, ours, theirs); err != nil {
		return m, err
	}
	out, err := g.output(ctx, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", sideRef+"1", sideRef+"2")
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

// sideRef is the ref of a side, without its number.
const sideRef = "refs/heads/side-"

// importSides makes the folder a bare repository with a commit for each side; the others are on top of side 0.
func (g git) importSides(ctx context.Context, sides ...[]File) (err error) {
	if _, err := g.output(ctx, "init", "--quiet", "--bare", "--template="); err != nil {
		return err
	}
	in, err := os.Create(filepath.Join(g.dir, "passbook-import"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for i, files := range sides {
		if err := importFiles(in, i, files); err != nil {
			return err
		}
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = g.run(ctx, in, "fast-import", "--quiet")
	return err
}

// importFiles writes a commit of files for git fast-import.
func importFiles(in io.Writer, side int, files []File) error {
	head := fmt.Sprintf("commit %s%d\nmark :%d\ncommitter passbook <passbook@localhost> 1000000000 +0000\ndata 0\n\n",
		sideRef, side, side+1)
	if side > 0 {
		head += "from :1\n"
	}
	if _, err := io.WriteString(in, head+"deleteall\n"); err != nil {
		return err
	}
	for _, f := range files {
		content, err := f.Read()
		if err == nil {
			_, err = fmt.Fprintf(in, "M %s inline %s\ndata %d\n%s\n", f.Mode, quoted(f.Path), len(content), content)
		}
		if err != nil {
			return fmt.Errorf("file %q: %w", f.Path, err)
		}
	}
	return nil
}

// filesOf returns the files of a tree.
func (g git) filesOf(ctx context.Context, tree string) (files []Merged, err error) {
	list, err := (&Repo{git: g}).entries(ctx, tree)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var ids strings.Builder
	for _, e := range list {
		ids.WriteString(e.id + "\n")
	}
	out, err := g.run(ctx, strings.NewReader(ids.String()), "cat-file", "--batch")
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
		files = append(files, Merged{Path: e.path, Mode: e.mode, Content: rest[:size:size]})
		out = rest[size+1:]
	}
	return files, nil
}

package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// conversions are the attributes with which git stores other bytes than the checkout has.
var conversions = []string{"text", "crlf", "eol", "ident", "filter", "working-tree-encoding"}

// Converted returns the files that a commit has with other bytes than the checkout, because their attributes differ from
// those of base: an agent has changed .gitattributes. What the attributes of base convert is left out.
func (w *Worktree) Converted(ctx context.Context, base, commit string, changes []Change) (files []string, err error) {
	if !slices.ContainsFunc(changes, func(c Change) bool {
		return path.Base(c.Path) == ".gitattributes" || path.Base(c.OldPath) == ".gitattributes"
	}) {
		return nil, nil
	}
	if files, err = w.converted(ctx, base, commit); err != nil {
		return nil, fmt.Errorf("compare the files of commit %s with those in %s: %w", commit, w.root, err)
	}
	return files, nil
}

func (w *Worktree) converted(ctx context.Context, base, commit string) (files []string, err error) {
	out, err := w.git.output(ctx, "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return nil, err
	}
	var paths []string
	stored := map[string]string{}
	for _, entry := range splitNUL(out) { // mode, type and id, a tab, and the path
		about, file, _ := strings.Cut(entry, "\t")
		if info, err := os.Lstat(filepath.Join(w.root, file)); err == nil && info.Mode().IsRegular() {
			paths, stored[file] = append(paths, file), about[strings.LastIndexByte(about, ' ')+1:]
		}
	}
	before, err := w.attributes(ctx, base, paths)
	if err != nil {
		return nil, err
	}
	after, err := w.attributes(ctx, commit, paths)
	if err != nil {
		return nil, err
	}
	for _, file := range paths {
		if before[file] == after[file] {
			continue
		}
		id, err := w.git.line(ctx, "hash-object", "--no-filters", "--", filepath.Join(w.root, file))
		if err != nil {
			return nil, err
		}
		if id != stored[file] {
			files = append(files, file)
		}
	}
	return files, nil
}

// attributes returns the conversions of files under the .gitattributes of a commit.
func (r *Repo) attributes(ctx context.Context, commit string, files []string) (of map[string]string, err error) {
	folder, err := os.MkdirTemp("", "passbook-index-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	g := r.git.withEnv("GIT_INDEX_FILE=" + filepath.Join(folder, "index"))
	if _, err := g.output(ctx, "read-tree", commit); err != nil {
		return nil, err
	}
	out, err := g.run(ctx, joinNUL(files), append([]string{"check-attr", "--cached", "--stdin", "-z"}, conversions...)...)
	of = map[string]string{}
	for row := range slices.Chunk(splitNUL(out), 3) { // file, attribute, value
		of[row[0]] += strings.Join(row[1:], "=") + "\n"
	}
	return of, err
}

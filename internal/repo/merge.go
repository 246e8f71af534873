package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
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

// MergeTrees merges the changes from base to theirs into ours, in a temporary repository.
func MergeTrees(ctx context.Context, base, ours, theirs []MergeFile) (m Merging, err error) {
	dir, err := os.MkdirTemp("", "passbook-merge-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	g := git{dir: dir}
	if err := g.initPlain(ctx); err != nil {
		return m, fmt.Errorf("merge trees: %w", err)
	}
	var parent string
	var sides []string
	for _, files := range [][]MergeFile{base, ours, theirs} {
		commit, err := g.commitFiles(ctx, files, parent)
		if err != nil {
			return m, fmt.Errorf("merge trees: %w", err)
		}
		if parent == "" {
			parent = commit
		}
		sides = append(sides, commit)
	}
	out, err := g.output(ctx, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", sides[1], sides[2])
	conflict := exitCode(err) == 1
	if err != nil && !conflict {
		return m, fmt.Errorf("merge trees: %w", err)
	}
	fields := splitNUL(out)
	if len(fields) == 0 {
		return m, errors.New("merge trees: git printed no tree")
	}
	if conflict {
		m.Conflicts = slices.DeleteFunc(fields[1:], func(p string) bool { return p == "" })
		slices.Sort(m.Conflicts)
		m.Conflicts = slices.Compact(m.Conflicts)
		return m, nil
	}
	m.Files, err = g.filesOf(ctx, fields[0])
	return m, err
}

// commitFiles commits files, and nothing else.
func (g git) commitFiles(ctx context.Context, files []MergeFile, parent string) (string, error) {
	var index bytes.Buffer
	for _, f := range files {
		id, err := g.run(ctx, nonNil(f.Content), "hash-object", "-w", "--stdin", "--no-filters")
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&index, "%s %s\t%s\x00", f.Mode, strings.TrimSpace(string(id)), f.Path)
	}
	in := g.withEnv("GIT_INDEX_FILE=" + g.dir + "/merge-index")
	if _, err := in.output(ctx, "read-tree", "--empty"); err != nil {
		return "", err
	}
	if _, err := in.run(ctx, nonNil(index.Bytes()), "update-index", "-z", "--add", "--index-info"); err != nil {
		return "", err
	}
	tree, err := in.line(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", tree, "-m", "lane"}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	who := g.withEnv("GIT_AUTHOR_NAME=passbook", "GIT_AUTHOR_EMAIL=passbook@localhost", "GIT_COMMITTER_NAME=passbook",
		"GIT_COMMITTER_EMAIL=passbook@localhost", "GIT_AUTHOR_DATE=@1000000000 +0000", "GIT_COMMITTER_DATE=@1000000000 +0000")
	return who.line(ctx, args...)
}

// nonNil lets git read an empty standard input.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// filesOf returns the files of a tree.
func (g git) filesOf(ctx context.Context, tree string) ([]MergeFile, error) {
	out, err := g.output(ctx, "ls-tree", "-r", "-z", "--full-tree", tree)
	if err != nil {
		return nil, err
	}
	var files []MergeFile
	for _, line := range splitNUL(out) {
		head, path, ok := strings.Cut(line, "\t")
		parts := strings.Fields(head)
		if !ok || len(parts) != 3 {
			continue
		}
		content, err := g.output(ctx, "cat-file", "blob", parts[2])
		if err != nil {
			return nil, err
		}
		files = append(files, MergeFile{Path: path, Mode: parts[0], Content: content})
	}
	return files, nil
}

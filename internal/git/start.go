package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/passbook-run/passbook/internal/environ"
)

// ImportMessage is the message of the commit of [Repo.Import].
const ImportMessage = "uncommitted changes of the source"

// CheckOut writes the files of a commit to a new folder, as a checkout has them, and nothing of git.
func (r *Repo) CheckOut(ctx context.Context, commit, dir string) (err error) {
	defer wrap(&err, "check out commit %s of %s to %s", commit, r.root, dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return r.git.withIndex(func(g git, _ string) error {
		g = g.withEnv("GIT_DIR="+r.common, "GIT_WORK_TREE="+dir)
		g.dir = dir
		_, err := g.output(ctx, "read-tree", "-m", "-u", commit)
		return err
	})
}

// Import returns a commit of the checked-out commit with everything that is not committed and not ignored. Without
// such changes it is the checked-out commit. It writes only objects.
func (r *Repo) Import(ctx context.Context) (commit string, err error) {
	defer wrap(&err, "read the uncommitted changes of %s", r.root)
	head, _, err := r.Head(ctx)
	if err != nil {
		return "", err
	}
	return r.commitChanges(ctx, head, ImportMessage)
}

// commitChanges returns a commit of the checkout on top of head, on no branch; without changes it is head.
func (r *Repo) commitChanges(ctx context.Context, head, message string) (string, error) {
	d, err := r.Dirt(ctx)
	if err != nil {
		return "", err
	}
	if len(d.Unmerged) > 0 {
		return "", fmt.Errorf("%s is in conflict: resolve it and retry", d.Unmerged[0])
	}
	tree, err := r.snapshot(ctx)
	if err != nil {
		return "", err
	}
	if same, err := r.hasTree(ctx, head, tree); err != nil || same {
		return head, err
	}
	return r.commitObject(ctx, tree, head, message)
}

// CommitAll commits everything that is not ignored on the checked-out branch. If there is nothing to commit, the
// id is "". It refuses a detached HEAD, conflicts, and an unfinished merge or rebase.
func (r *Repo) CommitAll(ctx context.Context, message string) (commit string, err error) {
	defer wrap(&err, "commit the changes in %s", r.root)
	head, branch, err := r.Head(ctx)
	if err != nil {
		return "", err
	}
	if err := r.checkIdle(branch); err != nil {
		return "", err
	}
	id, err := r.commitChanges(ctx, head, message)
	if err != nil || id == head {
		return "", err
	}
	if err := r.moveRef(ctx, branch, id, head); err != nil {
		return "", err
	}
	_, err = r.git.output(ctx, "add", "--all") // update the index
	return id, err
}

// snapshot stores what a commit of the checkout would contain as a tree and returns its id. Ignored files are
// excluded. Index and files are unchanged.
func (r *Repo) snapshot(ctx context.Context) (tree string, err error) {
	err = r.git.withIndex(func(g git, index string) error {
		err := copyWithTime(filepath.Join(r.gitDir, "index"), index)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("copy the index: %w", err)
		}
		if _, err := g.output(ctx, "add", "--all"); err != nil {
			return err
		}
		tree, err = g.line(ctx, "write-tree")
		return err
	})
	return tree, err
}

// copyWithTime copies an index. The copy keeps the time of the original, which git needs to detect changed files.
func copyWithTime(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// Excludes returns the content of the user's files of ignore rules: core.excludesFile, then info/exclude, which counts
// more. Missing files are left out.
func (r *Repo) Excludes(ctx context.Context) (all []string, err error) {
	global, err := r.git.line(ctx, "config", "--type=path", "--get", "core.excludesFile")
	if err != nil && exitCode(err) != 1 {
		return nil, fmt.Errorf("find the ignore rules of the user: %w", err)
	}
	if err != nil { // not set
		env := environ.Merge(ctx, os.Environ())
		config := cmp.Or(environ.Value(env, "XDG_CONFIG_HOME"), filepath.Join(environ.Value(env, "HOME"), ".config"))
		global = filepath.Join(config, "git", "ignore")
	} else if global != "" && !filepath.IsAbs(global) {
		global = filepath.Join(r.root, global)
	}
	for _, path := range []string{global, filepath.Join(r.common, "info", "exclude")} {
		raw, err := os.ReadFile(path)
		if err == nil {
			all = append(all, string(raw))
		} else if !passedOver(err) {
			return nil, fmt.Errorf("read the ignore rules of the user: %w", err)
		}
	}
	return all, nil
}

// passedOver reports whether git does without a file of rules.
func passedOver(err error) bool {
	return slices.ContainsFunc([]error{fs.ErrNotExist, fs.ErrPermission, syscall.EISDIR, syscall.ENOTDIR},
		func(of error) bool { return errors.Is(err, of) })
}

// Branch is a branch and its commit.
type Branch struct{ Name, At string }

// RunBranches returns the branches of a run: their names end with the start of its id.
func (r *Repo) RunBranches(ctx context.Context, runID string) (own []Branch, err error) {
	out, err := r.git.output(ctx, "for-each-ref", "--format=%(objectname) %(refname:short)", "refs/heads/"+BranchPrefix)
	if err != nil {
		return nil, fmt.Errorf("list the branches of run %s in %s: %w", runID, r.root, err)
	}
	for line := range strings.Lines(string(out)) {
		at, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if id := "/" + runID[:min(8, len(runID))]; strings.HasSuffix(strings.ReplaceAll(name, "-", "/"), id) {
			own = append(own, Branch{name, at})
		}
	}
	return own, nil
}

// IncludeFile lists ignored files that a copy of the checkout needs, in the syntax of .gitignore.
const IncludeFile = ".worktreeinclude"

// Included returns the ignored files of the checkout that its .worktreeinclude lists.
func (r *Repo) Included(ctx context.Context) (names []string, err error) {
	info, err := os.Lstat(filepath.Join(r.root, IncludeFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() { // git would wait for a pipe
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for _, rules := range []string{"--exclude-standard", "--exclude-from=" + IncludeFile} {
		out, err := r.git.output(ctx, "ls-files", "-z", "--others", "--ignored", rules)
		if err != nil {
			return nil, fmt.Errorf("list the files of %s in %s: %w", IncludeFile, r.root, err)
		}
		for _, name := range splitNUL(out) {
			if listed[name] {
				names = append(names, name)
			}
			listed[name] = true
		}
	}
	return names, nil
}

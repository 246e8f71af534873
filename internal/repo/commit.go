package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ImportMessage is the message of the commit of [Worktree.Carry].
const ImportMessage = "uncommitted changes of the source"

// defaultIdentity is the author and committer if git has none configured.
var defaultIdentity = []string{
	"GIT_AUTHOR_NAME=Passbook", "GIT_AUTHOR_EMAIL=passbook@localhost", "GIT_COMMITTER_NAME=Passbook",
	"GIT_COMMITTER_EMAIL=passbook@localhost",
}

// committer returns git with an author: the configured one if complete, else Passbook.
func (r *Repo) committer(ctx context.Context) git {
	if _, err := r.git.output(ctx, "-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT"); err != nil {
		return r.git.withEnv(defaultIdentity...)
	}
	return r.git
}

// commitTree creates a commit and moves the checked-out branch from parent to it. No file changes.
func (r *Repo) commitTree(ctx context.Context, tree, parent, message string) (string, error) {
	id, err := r.commitObject(ctx, tree, parent, message)
	if err != nil {
		return "", err
	}
	subject, _, _ := strings.Cut(message, "\n")
	_, err = r.committer(ctx).output(ctx, "update-ref", "-m", "passbook: "+subject, "HEAD", id, parent)
	return id, err
}

// commitObject creates a commit without a branch.
func (r *Repo) commitObject(ctx context.Context, tree, parent, message string) (string, error) {
	out, err := r.committer(ctx).run(ctx, []byte(message), "commit-tree", tree, "-p", parent, "-F", "-")
	return strings.TrimSpace(string(out)), err
}

// CommitAll commits everything that is not ignored on the checked-out branch. If there is nothing to commit, the
// id is "". It refuses a detached HEAD, conflicts, and an unfinished merge or rebase.
func (r *Repo) CommitAll(ctx context.Context, message string) (commit string, err error) {
	if commit, err = r.commitAll(ctx, message); err != nil {
		return "", fmt.Errorf("commit the changes in %s: %w", r.root, err)
	}
	return commit, nil
}

func (r *Repo) commitAll(ctx context.Context, message string) (string, error) {
	head, branch, err := r.Head(ctx)
	if err != nil {
		return "", err
	}
	d, err := r.Dirt(ctx)
	switch {
	case err != nil:
		return "", err
	case branch == "":
		return "", fmt.Errorf("no branch is checked out (detached HEAD): switch to one and retry")
	case d.Operation != "":
		return "", fmt.Errorf("a %s is in progress: finish or abort it and retry", d.Operation)
	case len(d.Unmerged) > 0:
		return "", fmt.Errorf("%s is in conflict: resolve it and retry", d.Unmerged[0])
	}
	tree, err := r.snapshot(ctx, true)
	if err != nil {
		return "", err
	}
	if same, err := r.hasTree(ctx, head, tree); err != nil || same {
		return "", err
	}
	id, err := r.commitTree(ctx, tree, head, message)
	if err != nil {
		return "", err
	}
	_, err = r.git.output(ctx, "add", "--all") // update the index
	return id, err
}

// hasTree reports whether a commit has exactly this tree.
func (r *Repo) hasTree(ctx context.Context, commit, tree string) (bool, error) {
	has, err := r.git.line(ctx, "rev-parse", "--verify", commit+"^{tree}")
	return has == tree, err
}

// Commit commits exactly these paths on the run's branch: added, changed and removed files. Renames need both
// paths, as from [Paths]. Other changes and the rest of the index are unchanged. If there is nothing to commit,
// the id is "".
func (w *Worktree) Commit(ctx context.Context, message string, paths ...string) (commit string, err error) {
	if _, err := w.checkOwned(ctx); err != nil || len(paths) == 0 {
		return "", err
	}
	if commit, err = w.commitPaths(ctx, message, paths); err != nil {
		return "", fmt.Errorf("commit in worktree %s: %w", w.root, err)
	}
	return commit, nil
}

func (r *Repo) commitPaths(ctx context.Context, message string, paths []string) (made string, err error) {
	head, err := r.commit(ctx, "HEAD")
	if err != nil {
		return "", err
	}
	index, drop, err := r.copyIndex()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, drop()) }()
	g := r.git.withEnv("GIT_INDEX_FILE=" + index)
	if _, err := g.output(ctx, "read-tree", head); err != nil {
		return "", err
	}
	if err := r.stage(ctx, g, paths); err != nil {
		return "", err
	}
	tree, err := g.line(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	if same, err := r.hasTree(ctx, head, tree); err != nil || same {
		return "", err
	}
	if err := r.stage(ctx, r.git, paths); err != nil { // before the commit: if it fails, no work is lost
		return "", err
	}
	return r.commitTree(ctx, tree, head, message)
}

// stage adds the files at these paths to an index and removes missing ones.
func (r *Repo) stage(ctx context.Context, g git, paths []string) error {
	var there, gone []string
	for _, p := range paths {
		ok, err := r.exists(p)
		switch {
		case err != nil:
			return err
		case ok:
			there = append(there, p)
		default:
			gone = append(gone, p)
		}
	}
	if len(gone) > 0 {
		if _, err := g.run(ctx, joinNUL(gone), "update-index", "--force-remove", "-z", "--stdin"); err != nil {
			return err
		}
	}
	if len(there) == 0 {
		return nil
	}
	_, err := g.run(ctx, joinNUL(there), "update-index", "--add", "--replace", "-z", "--stdin")
	return err
}

// exists reports whether git sees a file at path: not behind a symbolic link, and a folder only if it is a nested
// repository.
func (r *Repo) exists(path string) (bool, error) {
	if !filepath.IsLocal(path) {
		return false, fmt.Errorf("path %q is not in the worktree", path)
	}
	parts := strings.Split(path, "/")
	at := r.root
	for i, name := range parts {
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		if isAbsent(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if last := i == len(parts)-1; !last {
			if !info.IsDir() {
				return false, nil
			}
			continue
		}
		if info.IsDir() {
			_, err := os.Lstat(filepath.Join(at, ".git"))
			return err == nil, nil
		}
		return info.Mode().IsRegular() || info.Mode()&fs.ModeSymlink != 0, nil
	}
	return false, nil
}

// ImportChanges imports the uncommitted changes of the source into the worktree as a separate commit, so that the run's
// changes are its own work. The source is unchanged. Untracked files are included on request, ignored ones never.
// It returns the commit that the run starts from: that one, or the source's if there are no changes. A second call
// finds the first commit. The worktree must be fresh: other changes in it are lost.
func (w *Worktree) ImportChanges(ctx context.Context, from *Repo, untracked bool) (base string, err error) {
	if base, err = w.importChanges(ctx, from, untracked); err != nil {
		return "", fmt.Errorf("import the uncommitted changes of %s into worktree %s: %w", from.root, w.root, err)
	}
	return base, nil
}

func (w *Worktree) importChanges(ctx context.Context, from *Repo, untracked bool) (string, error) {
	if _, err := w.checkOwned(ctx); err != nil {
		return "", err
	}
	head, done, err := w.imported(ctx)
	if err != nil || done {
		return head, err
	}
	source, _, err := from.Head(ctx)
	if err != nil {
		return "", err
	}
	if source != head {
		return "", fmt.Errorf("the worktree is at commit %s and the source at %s: they must match", head, source)
	}
	d, err := from.Dirt(ctx)
	if err != nil {
		return "", err
	}
	if len(d.Unmerged) > 0 {
		return "", fmt.Errorf("%s is in conflict: resolve it and retry", d.Unmerged[0])
	}
	tree, err := from.snapshot(ctx, untracked)
	if err != nil {
		return "", err
	}
	if same, err := w.hasTree(ctx, head, tree); err != nil || same {
		return head, err
	}
	id, err := w.commitObject(ctx, tree, head, ImportMessage)
	if err != nil {
		return "", err
	}
	return id, w.reset(ctx, id) // moves branch, index and files; idempotent after a crash
}

// imported reports whether the checked-out commit was made by Carry.
func (w *Worktree) imported(ctx context.Context) (head string, done bool, err error) {
	out, err := w.git.line(ctx, "log", "-1", "--format=%H%n%s", "HEAD")
	head, subject, _ := strings.Cut(out, "\n")
	return head, subject == ImportMessage, err
}

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

// CarryMessage is the message of the commit that [Worktree.Carry] makes.
const CarryMessage = "uncommitted changes of the source"

// whoever commits when the repository's configuration does not say.
var nobody = []string{
	"GIT_AUTHOR_NAME=Passbook", "GIT_AUTHOR_EMAIL=passbook@localhost", "GIT_COMMITTER_NAME=Passbook", "GIT_COMMITTER_EMAIL=passbook@localhost",
}

// committer is git with an author: the configured one if it has name and address, else Passbook.
func (r *Repo) committer(ctx context.Context) git {
	if _, err := r.git.out(ctx, "-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT"); err != nil {
		return r.git.with(nobody...)
	}
	return r.git
}

// commitTree makes a commit and moves the checked-out branch from parent to it. No file changes.
func (r *Repo) commitTree(ctx context.Context, tree, parent, message string) (string, error) {
	id, err := r.commitObject(ctx, tree, parent, message)
	if err != nil {
		return "", err
	}
	subject, _, _ := strings.Cut(message, "\n")
	_, err = r.committer(ctx).out(ctx, "update-ref", "-m", "passbook: "+subject, "HEAD", id, parent)
	return id, err
}

// commitObject makes a commit that no branch has yet.
func (r *Repo) commitObject(ctx context.Context, tree, parent, message string) (string, error) {
	out, err := r.committer(ctx).feed(ctx, []byte(message), "commit-tree", tree, "-p", parent, "-F", "-")
	return strings.TrimSpace(string(out)), err
}

// CommitAll commits everything that is not ignored on the checked-out branch. Without anything to commit the id is "". It refuses a
// detached HEAD, conflicts, and a merge or rebase that is under way.
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
		return "", fmt.Errorf("no branch is checked out (detached HEAD): switch to one, and try again")
	case d.Operation != "":
		return "", fmt.Errorf("a %s is under way: end or abort it, and try again", d.Operation)
	case len(d.Unmerged) > 0:
		return "", fmt.Errorf("%s is in conflict: resolve it, and try again", d.Unmerged[0])
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
	_, err = r.git.out(ctx, "add", "--all") // the index follows
	return id, err
}

// hasTree says whether a commit holds exactly this tree.
func (r *Repo) hasTree(ctx context.Context, commit, tree string) (bool, error) {
	has, err := r.git.line(ctx, "rev-parse", "--verify", commit+"^{tree}")
	return has == tree, err
}

// Commit records exactly these paths on the run's branch: files that were added or changed, and files that are gone. Both paths of a
// rename must be given; [Paths] gives them. What else is changed or staged stays as it is. Without anything to commit the id is "".
func (w *Worktree) Commit(ctx context.Context, message string, paths ...string) (commit string, err error) {
	if _, err := w.ours(ctx); err != nil || len(paths) == 0 {
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
	g := r.git.with("GIT_INDEX_FILE=" + index)
	if _, err := g.out(ctx, "read-tree", head); err != nil {
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
	if err := r.stage(ctx, r.git, paths); err != nil { // before the commit: if it fails, nothing of the user's work is lost
		return "", err
	}
	return r.commitTree(ctx, tree, head, message)
}

// stage brings the files at these paths into an index, and takes those out that are gone.
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
		if _, err := g.feed(ctx, zeroed(gone), "update-index", "--force-remove", "-z", "--stdin"); err != nil {
			return err
		}
	}
	if len(there) == 0 {
		return nil
	}
	_, err := g.feed(ctx, zeroed(there), "update-index", "--add", "--replace", "-z", "--stdin")
	return err
}

// exists says whether git can see a file at path: one behind a symbolic link is not in the repository, and a folder is no file unless it
// is a repository of its own.
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

// Carry brings the uncommitted changes of the source into the worktree, and records them there as a commit of their own, so that the run's
// changes are the run's work only. The source is not touched. Untracked files come along if asked for, ignored ones never. It returns
// the commit that the run starts from: that one, or the source's if there is nothing to carry. A second call finds the first one's commit.
// The worktree must be fresh: whatever else is in it is gone.
func (w *Worktree) Carry(ctx context.Context, from *Repo, untracked bool) (base string, err error) {
	if base, err = w.carry(ctx, from, untracked); err != nil {
		return "", fmt.Errorf("carry the uncommitted changes of %s into worktree %s: %w", from.root, w.root, err)
	}
	return base, nil
}

func (w *Worktree) carry(ctx context.Context, from *Repo, untracked bool) (string, error) {
	if _, err := w.ours(ctx); err != nil {
		return "", err
	}
	head, done, err := w.carried(ctx)
	if err != nil || done {
		return head, err
	}
	source, _, err := from.Head(ctx)
	if err != nil {
		return "", err
	}
	if source != head {
		return "", fmt.Errorf("the worktree is at commit %s and the source at %s: they must be the same", head, source)
	}
	d, err := from.Dirt(ctx)
	if err != nil {
		return "", err
	}
	if len(d.Unmerged) > 0 {
		return "", fmt.Errorf("%s is in conflict: resolve it, and try again", d.Unmerged[0])
	}
	tree, err := from.snapshot(ctx, untracked)
	if err != nil {
		return "", err
	}
	if same, err := w.hasTree(ctx, head, tree); err != nil || same {
		return head, err
	}
	id, err := w.commitObject(ctx, tree, head, CarryMessage)
	if err != nil {
		return "", err
	}
	return id, w.reset(ctx, id) // moves branch, index and files; doing it again after a crash mends what is half done
}

// carried says whether the checked-out commit is one of Carry.
func (w *Worktree) carried(ctx context.Context) (head string, done bool, err error) {
	out, err := w.git.line(ctx, "log", "-1", "--format=%H%n%s", "HEAD")
	head, subject, _ := strings.Cut(out, "\n")
	return head, subject == CarryMessage, err
}

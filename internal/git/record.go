package git

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Commit is a commit to record.
type Commit struct {
	Branch  string // the run's branch
	Parent  string // commit that the branch is at; it is created there if it is missing
	Start   string // commit whose attributes convert the files
	Message string
	Own     string // line in the messages of the run's commits: such commits after Parent are replaced; may be empty
	Files   []File // those that differ from Parent
}

// BranchError means that a branch is at another commit than wanted, or checked out.
type BranchError struct {
	Branch string
	At     string // current commit
	Path   string // its checkout, or ""
}

func (e *BranchError) Error() string {
	if e.Path != "" {
		return fmt.Sprintf("branch %s is checked out at %s: switch to another branch there and retry", e.Branch, e.Path)
	}
	return fmt.Sprintf("branch %s is already at commit %s", e.Branch, e.At)
}

// Record commits files on the run's branch and returns the commit. It writes only objects and the branch. Files that
// attributes of commit Start convert are stored converted, for which the user's filters run; attributes among the
// files do not apply. Without a difference the commit is Parent.
//
// A repetition returns the commit that is there. A branch that was moved or is checked out is a [*BranchError]. A name
// that git refuses is an error that contains it.
func (r *Repo) Record(ctx context.Context, c Commit) (id string, err error) {
	defer wrap(&err, "commit on branch %s of %s", c.Branch, r.root)
	for _, f := range c.Files {
		if !filepath.IsLocal(f.Path) || path.Clean(f.Path) != f.Path {
			return "", fmt.Errorf("file %q: its path leads out of the tree", f.Path)
		}
	}
	parent, at, err := r.target(ctx, c.Branch, c.Parent)
	if err != nil {
		return "", err
	}
	list, err := r.store(ctx, c.Start, c.Files)
	if err != nil {
		return "", err
	}
	tree, err := r.treeWith(ctx, parent, list)
	if err != nil {
		return "", err
	}
	same, err := r.hasTree(ctx, parent, tree)
	if err != nil {
		return "", err
	}
	if at != "" && at != parent {
		err := r.checkRecorded(ctx, c.Branch, at, parent, tree, same)
		if moved := (*BranchError)(nil); !errors.As(err, &moved) || !r.onlyOwn(ctx, c.Own, parent, at) {
			return at, err
		}
	}
	if err := r.checkNotOut(ctx, c.Branch, at); err != nil {
		return "", err
	}
	id = parent
	if !same {
		if id, err = r.commitObject(ctx, tree, parent, c.Message); err != nil {
			return "", err
		}
	}
	return id, r.moveRef(ctx, c.Branch, id, at)
}

// onlyOwn reports whether all commits since parent have the line in their messages: they are of passes that were
// interrupted before the journal had them.
func (r *Repo) onlyOwn(ctx context.Context, line, parent, at string) bool {
	if ahead, err := r.isAncestor(ctx, parent, at); line == "" || err != nil || !ahead {
		return false
	}
	out, err := r.git.output(ctx, "log", "-z", "--format=%B", parent+".."+at)
	return err == nil && !slices.ContainsFunc(splitNUL(out), func(message string) bool {
		return !slices.Contains(strings.Split(message, "\n"), line)
	})
}

// store converts files with the attributes of a commit.
func (r *Repo) store(ctx context.Context, start string, files []File) ([]entry, error) {
	attributes, err := r.attributesFor(ctx, start, files)
	if err != nil {
		return nil, err
	}
	return r.storeAs(ctx, attributes, files)
}

// treeWith returns the tree of a commit with other entries.
func (r *Repo) treeWith(ctx context.Context, commit string, list []entry) (tree string, err error) {
	err = r.git.withIndex(func(g git, _ string) error {
		if _, err := g.output(ctx, "read-tree", commit); err != nil {
			return err
		}
		if err := g.setEntries(ctx, list); err != nil {
			return err
		}
		tree, err = g.line(ctx, "write-tree")
		return err
	})
	return tree, err
}

// checkRecorded accepts a branch that a former call has moved from parent to a commit with this tree.
func (r *Repo) checkRecorded(ctx context.Context, branch, at, parent, tree string, same bool) error {
	out, err := r.git.line(ctx, "log", "-1", "--format=%T %P", at)
	if err == nil && (same || out != tree+" "+parent) {
		return &BranchError{Branch: branch, At: at}
	}
	return err
}

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

// commitObject creates a commit without a branch.
func (r *Repo) commitObject(ctx context.Context, tree, parent, message string) (string, error) {
	out, err := r.committer(ctx).run(ctx, strings.NewReader(message), "commit-tree", tree, "-p", parent, "-F", "-")
	return strings.TrimSpace(string(out)), err
}

// hasTree reports whether a commit has exactly this tree.
func (r *Repo) hasTree(ctx context.Context, commit, tree string) (bool, error) {
	has, err := r.git.line(ctx, "rev-parse", "--verify", commit+"^{tree}")
	return has == tree, err
}

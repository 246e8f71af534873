package git

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// commitPaths commits paths on the checked-out branch, as the delivered commit has them: nothing is converted again, and
// no file is read. Files, other changes and the rest of the index are unchanged. If there is nothing to commit, the id is
// "".
//
// A detached HEAD, an unfinished merge or the like, and other staged changes of these paths are a [*RefusedError].
func (r *Repo) commitPaths(ctx context.Context, d Delivered) (string, error) {
	head, branch, err := r.Head(ctx)
	if err != nil {
		return "", err
	}
	if err := r.checkIdle(branch); err != nil {
		return "", err
	}
	there, err := r.entriesAt(ctx, d.Commit, d.Paths)
	if err != nil {
		return "", err
	}
	var list []entry
	for _, p := range d.Paths {
		e := there[p] // without a mode if it is removed
		e.path = p
		list = append(list, e)
	}
	if err := r.checkStaged(ctx, head, list); err != nil || d.DryRun {
		return "", err
	}
	tree, err := r.treeWith(ctx, head, list)
	if err != nil {
		return "", err
	}
	if same, err := r.hasTree(ctx, head, tree); err != nil || same {
		return "", err
	}
	id, err := r.commitObject(ctx, tree, head, d.Message)
	if err != nil {
		return "", err
	}
	if err := r.before("stage"); err != nil {
		return "", err
	}
	if err := r.git.setEntries(ctx, list); err != nil { // before the branch: after a crash nothing looks reverted
		return "", err
	}
	if err := r.before("move branch"); err != nil {
		return "", err
	}
	return id, r.moveRef(ctx, branch, id, head)
}

// checkIdle refuses a checkout with an unfinished operation or without a branch.
func (r *Repo) checkIdle(branch string) error {
	if o := operation(r.gitDir); o != "" {
		return &RefusedError{Message: fmt.Sprintf("a %s is in progress in %s: finish or abort it and retry", o, r.root)}
	}
	if branch == "" {
		return &RefusedError{Message: fmt.Sprintf("no branch is checked out in %s (detached HEAD): switch to one and "+
			"retry", r.root)}
	}
	return nil
}

// checkStaged refuses entries that are staged as something else than wanted or committed.
func (r *Repo) checkStaged(ctx context.Context, head string, wanted []entry) error {
	out, err := r.git.output(ctx, "diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", head, "--")
	if err != nil {
		return err
	}
	staged := map[string]string{} // mode and id
	for fields := splitNUL(out); len(fields) >= 2; fields = fields[2:] {
		if f := strings.Fields(fields[0]); len(f) == 5 {
			staged[fields[1]] = f[1] + " " + f[3]
		}
	}
	var other []string
	for _, e := range wanted {
		now, differs := staged[e.path]
		removed := e.mode == "" && strings.HasPrefix(now, "000000 ")
		if differs && !removed && now != e.mode+" "+e.id {
			other = append(other, e.path)
		}
	}
	if len(other) > 0 {
		slices.Sort(other)
		return &RefusedError{Paths: other, Message: r.root + " has staged changes in files to deliver: commit or unstage " +
			"them and retry"}
	}
	return nil
}

// hasTrailer reports whether a commit's message contains a line.
func (r *Repo) hasTrailer(ctx context.Context, commit, line string) (bool, error) {
	out, err := r.git.output(ctx, "log", "-1", "--format=%B", commit)
	for text := range strings.Lines(string(out)) {
		if strings.TrimSpace(text) == line {
			return true, err
		}
	}
	return false, err
}

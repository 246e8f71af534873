package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// RefusedError means that the state of a target prevents writing to it; its message describes the fix.
type RefusedError struct {
	Paths   []string // sorted
	Message string
}

func (e *RefusedError) Error() string {
	if len(e.Paths) == 0 {
		return clip(e.Message, maxMessage)
	}
	return clip(e.Message, maxMessage) + ": " + firstPaths(e.Paths)
}

// asRefused converts git's refusal into a [*RefusedError]. Temporary errors are unchanged: a lock of another git
// process, a full disk.
func asRefused(err error) error {
	var e *Error
	if !errors.As(err, &e) || exitCode(err) <= 0 && !errors.Is(err, errFilter) || e.locked() ||
		strings.Contains(e.Message, "No space left on device") {
		return err
	}
	return &RefusedError{Message: e.Error()}
}

// CreateBranch creates a branch at commit. A branch that exists at that commit is not an error; at another it is a
// [*BranchError].
func (r *Repo) CreateBranch(ctx context.Context, name, commit string) (err error) {
	defer wrap(&err, "create branch %s in %s", name, r.root)
	id, at, err := r.target(ctx, name, commit)
	if err == nil && at != "" && at != id {
		err = &BranchError{Branch: name, At: at}
	}
	if err == nil {
		err = r.moveRef(ctx, name, id, at)
	}
	return err
}

// target resolves the commit of a branch: the wanted one, and the current one or "".
func (r *Repo) target(ctx context.Context, name, commit string) (id, at string, err error) {
	if _, err := r.git.output(ctx, "check-ref-format", "--branch", name); err != nil {
		return "", "", asRefused(err)
	}
	if id, err = r.commit(ctx, commit); err != nil {
		return "", "", err
	}
	at, err = r.branchAt(ctx, name)
	return id, at, err
}

// moveRef moves a branch from one commit to another, or creates it.
func (r *Repo) moveRef(ctx context.Context, branch, to, from string) error {
	if to == from {
		return nil
	}
	old := from
	if old == "" {
		old = strings.Repeat("0", len(to))
	}
	_, err := r.git.output(ctx, "update-ref", "-m", "passbook: "+branch, "refs/heads/"+branch, to, old)
	if err == nil {
		return nil
	}
	if at, reading := r.branchAt(ctx, branch); reading == nil && at != from {
		return &BranchError{Branch: branch, At: at}
	}
	return asRefused(err)
}

// checkNotOut refuses a branch that is checked out: its checkout would differ from it. A folder that is gone is none.
func (r *Repo) checkNotOut(ctx context.Context, branch, at string) error {
	list, err := r.Checkouts(ctx, branch)
	for _, folder := range list {
		if _, gone := os.Lstat(folder); !errors.Is(gone, fs.ErrNotExist) {
			return &BranchError{Branch: branch, At: at, Path: folder}
		}
	}
	return err
}

// Checkouts returns the registered folders of a branch, whether or not they exist. The oldest supported git has no -z,
// so a path with a newline is misread; it then matches no path.
func (r *Repo) Checkouts(ctx context.Context, branch string) (folders []string, err error) {
	out, err := r.git.output(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return nil, fmt.Errorf("list the checkouts of %s: %w", r.root, err)
	}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n\n") {
		lines := strings.Split(paragraph, "\n")
		if folder, ok := strings.CutPrefix(lines[0], "worktree "); ok &&
			slices.Contains(lines, "branch refs/heads/"+branch) {
			folders = append(folders, folder)
		}
	}
	return folders, nil
}

// RemoveBranch removes a run's branch that is at this commit. A missing branch is not an error. One that is at another
// commit or checked out is a [*BranchError].
func (r *Repo) RemoveBranch(ctx context.Context, branch, at string) (err error) {
	defer wrap(&err, "remove branch %s of %s", branch, r.root)
	if !strings.HasPrefix(branch, BranchPrefix) {
		return &RefusedError{Message: "not the branch of a run: its name must begin with " + BranchPrefix}
	}
	now, err := r.branchAt(ctx, branch)
	switch {
	case err != nil || now == "":
		return err
	case now != at:
		return &BranchError{Branch: branch, At: now}
	}
	if err := r.checkNotOut(ctx, branch, at); err != nil {
		return err
	}
	_, err = r.git.output(ctx, "update-ref", "-d", "refs/heads/"+branch, at)
	return asRefused(err)
}

// BranchContent is the content of a run's branch.
type BranchContent struct {
	At   string   // its commit; "": no such branch
	Only []string // commits on no other branch, tag or checkout, newest first: short id and subject
}

// OwnWork returns the commits that would be lost with a run's branch. Branches besides count as lost too. Nothing
// is written.
func (r *Repo) OwnWork(ctx context.Context, branch string, besides ...string) (BranchContent, error) {
	at, err := r.branchAt(ctx, branch)
	if err != nil || at == "" {
		return BranchContent{}, err
	}
	only, err := r.onlyIn(ctx, at, append(slices.Clip(besides), branch))
	if err != nil {
		return BranchContent{}, fmt.Errorf("list the commits that are only on branch %s: %w", branch, err)
	}
	return BranchContent{At: at, Only: only}, nil
}

// onlyIn returns the ancestors of a commit that are only on these branches.
func (r *Repo) onlyIn(ctx context.Context, commit string, branches []string) (list []string, err error) {
	args := []string{"log", "--format=%h %s", commit, "--not"}
	for _, b := range branches {
		args = append(args, "--exclude="+b)
	}
	args = append(args, "--branches", "--tags", "--remotes")
	if _, err := r.commit(ctx, "HEAD"); err == nil { // a repository with branches may have no commit checked out
		args = append(args, "HEAD")
	}
	out, err := r.git.output(ctx, append(args, "--")...)
	for line := range strings.Lines(string(out)) {
		list = append(list, strings.TrimSpace(line))
	}
	return list, err
}

// Contains reports whether a commit exists and is reachable from something else than these branches.
func (r *Repo) Contains(ctx context.Context, commit string, besides ...string) bool {
	id, err := r.commit(ctx, commit)
	if err != nil {
		return false
	}
	only, err := r.onlyIn(ctx, id, besides)
	return err == nil && len(only) == 0
}

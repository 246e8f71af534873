package repo

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// NotForwardError says that a branch has commits that the delivered one does not build on.
type NotForwardError struct{ Branch, At, Commit string }

func (e *NotForwardError) Error() string {
	return fmt.Sprintf("branch %s is at %s, which %s does not build on: merge or rebase by hand, or deliver to another branch", e.Branch, e.At, e.Commit)
}

// CreateBranch makes a branch at commit. One that is there at that commit is fine; at another it is a [*BranchError].
func (r *Repo) CreateBranch(ctx context.Context, name, commit string) error {
	if err := r.createBranch(ctx, name, commit); err != nil {
		return fmt.Errorf("create branch %s in %s: %w", name, r.root, err)
	}
	return nil
}

func (r *Repo) createBranch(ctx context.Context, name, commit string) error {
	id, at, err := r.target(ctx, name, commit)
	switch {
	case err != nil || at == id:
		return err
	case at != "":
		return &BranchError{Branch: name, At: at}
	}
	_, err = r.git.out(ctx, "update-ref", "-m", "passbook: branch", "refs/heads/"+name, id, strings.Repeat("0", len(id)))
	return refused(err)
}

// FastForward moves a branch on to commit, and its files with it if it is checked out here. Git then refuses to overwrite uncommitted
// changes. It refuses a branch that is checked out elsewhere with a [*BranchError], and one that has other commits with a
// [*NotForwardError]. A branch that has the commit already stays.
func (r *Repo) FastForward(ctx context.Context, name, commit string) error {
	if err := alone(ctx, r.common, worktreesLock, func() error { return r.fastForward(ctx, name, commit) }); err != nil {
		return fmt.Errorf("fast-forward branch %s in %s: %w", name, r.root, err)
	}
	return nil
}

func (r *Repo) fastForward(ctx context.Context, name, commit string) error {
	id, at, err := r.target(ctx, name, commit)
	if err != nil {
		return err
	}
	if at == "" {
		return errors.New("there is no such branch")
	}
	if has, err := r.isAncestor(ctx, id, at); err != nil || has {
		return err
	}
	switch forward, err := r.isAncestor(ctx, at, id); {
	case err != nil:
		return err
	case !forward:
		return &NotForwardError{Branch: name, At: at, Commit: id}
	}
	list, err := r.registered(ctx)
	if err != nil {
		return err
	}
	for _, w := range list {
		if w.branch != name {
			continue
		}
		if w.path != r.root {
			return &BranchError{Branch: name, At: at, Path: w.path}
		}
		_, err := r.git.out(ctx, "merge", "--quiet", "--ff-only", "--no-verify-signatures", "--no-autostash", "--no-stat", id)
		return refused(err)
	}
	_, err = r.git.out(ctx, "update-ref", "-m", "passbook: fast-forward", "refs/heads/"+name, id, at)
	return refused(err)
}

// target resolves what a branch is to become, and where it is: "" if it is nowhere.
func (r *Repo) target(ctx context.Context, name, commit string) (id, at string, err error) {
	if _, err := r.git.out(ctx, "check-ref-format", "--branch", name); err != nil {
		return "", "", refused(err)
	}
	if id, err = r.commit(ctx, commit); err != nil {
		return "", "", err
	}
	at, err = r.branchAt(ctx, name)
	return id, at, err
}

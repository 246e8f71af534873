package repo

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// NotForwardError means that a branch has commits that are not in the history of the delivered one.
type NotForwardError struct{ Branch, At, Commit string }

func (e *NotForwardError) Error() string {
	return fmt.Sprintf(
		"branch %s is at %s, which is not an ancestor of %s: merge or rebase manually, or deliver to another branch",
		e.Branch,
		e.At, e.Commit,
	)
}

// CreateBranch creates a branch at commit. A branch that exists at that commit is not an error; at another it is a
// [*BranchError].
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
	_, err = r.git.output(ctx, "update-ref", "-m", "passbook: branch", "refs/heads/"+name, id,
		strings.Repeat("0", len(id)))
	return asRefused(err)
}

// FastForward moves a branch forward to commit, with its files if it is checked out here; git then refuses to
// overwrite uncommitted changes. A branch that is checked out elsewhere is a [*BranchError], one with other
// commits a [*NotForwardError]. A branch that contains the commit is unchanged.
func (r *Repo) FastForward(ctx context.Context, name, commit string) error {
	if err := withLock(ctx, r.common, worktreesLock,
		func() error { return r.fastForward(ctx, name, commit) }); err != nil {
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
		return errors.New("no such branch")
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
		_, err := r.git.output(ctx, "merge", "--quiet", "--ff-only", "--no-verify-signatures", "--no-autostash",
			"--no-stat", id)
		return asRefused(err)
	}
	_, err = r.git.output(ctx, "update-ref", "-m", "passbook: fast-forward", "refs/heads/"+name, id, at)
	return asRefused(err)
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

package repo

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// RefusedError means that the state of a target prevents writing to it; its message describes the fix.
type RefusedError struct {
	Paths   []string // files with uncommitted changes; sorted
	Message string   // message
}

func (e *RefusedError) Error() string {
	if len(e.Paths) == 0 {
		return clip(e.Message, maxMessage)
	}
	return clip(e.Message, maxMessage) + ": " + firstPaths(e.Paths)
}

// Ready reports whether a patch may be applied to the checkout, and committed if wanted. An unfinished merge or
// the like, a detached HEAD that would lose the commit, and uncommitted changes in files of the patch are a
// [*RefusedError].
func (r *Repo) Ready(ctx context.Context, patch []byte, applied, commit bool) error {
	if err := r.checkIdle(); err != nil {
		return err
	}
	if commit {
		switch _, branch, err := r.Head(ctx); {
		case err != nil:
			return err
		case branch == "":
			return &RefusedError{
				Message: fmt.Sprintf("no branch is checked out in %s (detached HEAD): switch to one and retry", r.root),
			}
		}
	}
	if applied {
		return nil
	}
	return r.checkClean(ctx, patch)
}

// checkIdle refuses a checkout with an unfinished operation.
func (r *Repo) checkIdle() error {
	if o := operation(r.gitDir); o != "" {
		return &RefusedError{Message: fmt.Sprintf("a %s is in progress in %s: finish or abort it and retry", o, r.root)}
	}
	return nil
}

// checkClean refuses a checkout with uncommitted changes in files of the patch.
func (r *Repo) checkClean(ctx context.Context, patch []byte) error {
	dirty, err := r.Overlaps(ctx, patch)
	if err != nil || len(dirty) == 0 {
		return err
	}
	return &RefusedError{
		Paths: dirty, Message: r.root + " has uncommitted changes in files to deliver: commit or stash them and retry",
	}
}

// checkBranch refuses a branch that is checked out elsewhere, with a [*BranchError], and one whose checkout here cannot
// take the patch.
func (r *Repo) checkBranch(ctx context.Context, branch string, patch []byte) error {
	list, err := r.registered(ctx)
	if err != nil {
		return err
	}
	for _, w := range list {
		switch {
		case w.branch != branch:
		case w.path != r.root:
			return &BranchError{Branch: branch, Path: w.path}
		default:
			if err := r.checkIdle(); err != nil {
				return err
			}
			return r.checkClean(ctx, patch)
		}
	}
	return nil
}

// asRefused converts git's refusal into a [*RefusedError]. Temporary errors are unchanged: a lock of another git
// process, a full disk.
func asRefused(err error) error {
	var e *Error
	if !errors.As(err, &e) || exitCode(err) <= 0 || e.locked() ||
		strings.Contains(e.Message, "No space left on device") {
		return err
	}
	return &RefusedError{Message: e.Error()}
}

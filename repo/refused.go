package repo

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// RefusedError says that a target stands in a way in which nothing is written to it, and what to do about it.
type RefusedError struct {
	Paths []string // files with uncommitted changes that are in the way; sorted
	Said  string   // in words
}

func (e *RefusedError) Error() string {
	if len(e.Paths) == 0 {
		return clip(e.Said, mostSaid)
	}
	return clip(e.Said, mostSaid) + ": " + some(e.Paths)
}

// Ready says whether a patch that is not there yet may be applied to the checkout, and committed where that is wanted. A merge or the like that is
// under way, a detached HEAD of which a commit would be lost, and uncommitted changes in what the patch touches are a [*RefusedError].
func (r *Repo) Ready(ctx context.Context, patch []byte, applied, commit bool) error {
	if err := r.idle(); err != nil {
		return err
	}
	if commit {
		switch _, branch, err := r.Head(ctx); {
		case err != nil:
			return err
		case branch == "":
			return &RefusedError{Said: fmt.Sprintf("no branch is checked out in %s (detached HEAD): switch to one, and try again", r.root)}
		}
	}
	if applied {
		return nil
	}
	return r.clear(ctx, patch)
}

// idle refuses a checkout in which something was begun and not ended.
func (r *Repo) idle() error {
	if o := operation(r.gitDir); o != "" {
		return &RefusedError{Said: fmt.Sprintf("a %s is under way in %s: end or abort it, and try again", o, r.root)}
	}
	return nil
}

// clear refuses a checkout with uncommitted changes in what the patch touches.
func (r *Repo) clear(ctx context.Context, patch []byte) error {
	dirty, err := r.Overlaps(ctx, patch)
	if err != nil || len(dirty) == 0 {
		return err
	}
	return &RefusedError{Paths: dirty, Said: r.root + " has changes of its own in what is to be delivered: commit or stash them, and try again"}
}

// free refuses a branch that is checked out elsewhere, with a [*BranchError], and one whose checkout here cannot take the patch.
func (r *Repo) free(ctx context.Context, branch string, patch []byte) error {
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
			if err := r.idle(); err != nil {
				return err
			}
			return r.clear(ctx, patch)
		}
	}
	return nil
}

// refused is git's own refusal of a target as a [*RefusedError]. What is over soon stays what it is: another git at work there, a full disk.
func refused(err error) error {
	var e *Error
	if !errors.As(err, &e) || exitCode(err) <= 0 || e.locked() || strings.Contains(e.Said, "No space left on device") {
		return err
	}
	return &RefusedError{Said: e.Error()}
}

package tree

import (
	"context"
	"errors"
	"slices"
	"syscall"
)

// FolderError means that a folder's content cannot become a tree: a retry fails unless the content changes.
type FolderError struct{ Err error }

func (e *FolderError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FolderError) Unwrap() error { return e.Err }

// passing are errors of the host.
var passing = []error{
	context.Canceled, context.DeadlineExceeded, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.ESTALE,
	syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR,
}

// Passing reports whether an error is of the host and not of the file: a retry may succeed.
func Passing(err error) bool {
	return slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) })
}

// ofFolder marks a permanent error of the folder.
func ofFolder(err error) error {
	if err == nil || Passing(err) {
		return err
	}
	return &FolderError{Err: err}
}

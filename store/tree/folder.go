package tree

import (
	"context"
	"errors"
	"slices"
	"syscall"
)

// FolderError says that what is in a folder cannot be made a tree: saving it
// again fails alike, unless somebody changes it.
type FolderError struct{ Err error }

func (e *FolderError) Error() string { return e.Err.Error() }

// Unwrap gives what is wrong with it.
func (e *FolderError) Unwrap() error { return e.Err }

// passing are errors of the machine.
var passing = []error{
	context.Canceled, context.DeadlineExceeded, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.ESTALE,
	syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR,
}

// Passing reports whether an error is of the machine and not of the file that it
// was met with: a later try may succeed.
func Passing(err error) bool {
	return slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) })
}

// ofFolder marks an error that came from the folder, if it is there to stay.
func ofFolder(err error) error {
	if err == nil || Passing(err) {
		return err
	}
	return &FolderError{Err: err}
}

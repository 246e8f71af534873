package operations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"

	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// beginning is what a start creates before its workflow. A refused start removes it.
type beginning struct {
	o      Operator
	dir    rundir.Dir
	claim  run.Claim
	source string   // repository with the run's branch; empty: it has none
	made   []string // created folders, innermost first
	vacant bool     // the directory was missing or empty
	perm   fs.FileMode
}

// take claims a directory for a new run, and records what it contained.
func (o Operator) take(dir rundir.Dir, claim run.Claim) (*beginning, error) {
	b := &beginning{o: o, dir: dir, claim: claim}
	for path := dir.Root; ; path = filepath.Dir(path) {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			break
		}
		b.made = append(b.made, path)
	}
	there, err := dir.ReadDir(".")
	b.vacant = errors.Is(err, fs.ErrNotExist) || err == nil && len(there) == 0
	if fi, err := os.Stat(dir.Root); err == nil {
		b.perm = fi.Mode().Perm()
	}
	return b, dir.Take(claim)
}

// refused removes what the start created, unless its workflow may have started. It returns the error of the start.
func (b *beginning) refused(ctx context.Context, err error) error {
	if b == nil || err == nil || mayHaveStarted(err) {
		return err
	}
	if uerr := b.remove(context.WithoutCancel(ctx)); uerr != nil {
		return errors.Join(err, fmt.Errorf("remove what the start created in %s: %w", b.dir.Root, uerr))
	}
	return err
}

// mayHaveStarted reports whether an error leaves open if the server has started the workflow.
func mayHaveStarted(err error) bool {
	var unknown *unknownStartError
	return errors.As(err, &unknown)
}

// unknownStartError is an error of a request that the server may have carried out.
type unknownStartError struct{ error }

func (e *unknownStartError) Unwrap() error { return e.error }

// ofRequest marks an error of a request to start a workflow, unless the server has refused it or it was never sent.
func ofRequest(ctx context.Context, err error) error {
	var failure serviceerror.ServiceError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failure):
		switch failure.Status().Code() {
		case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.Unauthenticated,
			codes.FailedPrecondition, codes.Unimplemented:
			return err
		}
	case ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled):
		return err
	}
	return &unknownStartError{err}
}

func (b *beginning) remove(ctx context.Context) error {
	if err := b.removeWorkspace(ctx); err != nil {
		return err
	}
	if err := b.removeDir(); err != nil {
		return err
	}
	if err := os.Remove(indexEntry(b.o.Settings.StateDir, b.claim.RunID)); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		return err
	}
	settings := b.o.Settings
	return errors.Join(sessions.Remove(settings.StateDir, b.claim.RunID), calls.RemoveEnvironment(settings.StateDir, settings.Scratch(), b.claim.RunID), b.unregister(ctx))
}

// removeWorkspace removes the run's workspace, and its branch from the repository.
func (b *beginning) removeWorkspace(ctx context.Context) error {
	if err := workspace.In(b.o.Settings.StateDir).Remove(ctx, b.claim.RunID); err != nil || b.source == "" {
		return err
	}
	r, err := git.OpenRefs(ctx, b.source)
	if err != nil {
		return nil //nolint:nilerr // without the repository it has no branch
	}
	own, err := r.RunBranches(ctx, b.claim.RunID)
	for _, o := range own {
		err = errors.Join(err, r.RemoveBranch(ctx, o.Name, o.At))
	}
	return err
}

// removeDir removes the claim, everything else in a directory that was vacant, and the created folders.
func (b *beginning) removeDir() error {
	if !b.vacant {
		return rundir.RemoveClaim(b.dir, b.claim)
	}
	if err := b.dir.Remove(); err != nil {
		return err
	}
	if len(b.made) == 0 { // it existed, and was empty
		if err := os.MkdirAll(b.dir.Root, b.perm); err != nil {
			return err
		}
		return os.Chmod(b.dir.Root, b.perm)
	}
	for _, path := range b.made[1:] {
		if err := os.Remove(path); err != nil {
			return nil //nolint:nilerr // another run has its directory there
		}
	}
	return nil
}

// unregister removes the record of the run from the store.
func (b *beginning) unregister(ctx context.Context) error {
	s, err := openStoreOn(ctx, b.dir.Disk, b.claim.Store)
	if err != nil {
		return err
	}
	if _, err := registration(ctx, s, b.claim.RunID); errors.Is(err, store.ErrMissing) {
		return nil
	}
	return s.Walk(ctx, func(o store.Object) error {
		if o.Name != runsPrefix+b.claim.RunID {
			return nil
		}
		_, err := s.Remove(ctx, o)
		return err
	})
}

package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/rundir"
)

// Snapshots are the trees of a run's workspace: their list is in the directory, their contents are in the store.
type Snapshots struct {
	Versions []rundir.Version // oldest first
	dir      rundir.Dir
	store    *store.Store
}

// SnapshotError reports a request about snapshots that cannot be met. Nothing was changed.
type SnapshotError struct{ Why string }

func (e *SnapshotError) Error() string { return e.Why }

// OpenSnapshots reads the versions of a run. For a run without a workspace the error is a [SnapshotError].
func OpenSnapshots(ctx context.Context, d rundir.Dir) (*Snapshots, error) {
	versions, err := d.Versions()
	if err != nil {
		return nil, err
	}
	claim, err := d.Claim()
	switch {
	case err != nil:
		return nil, err
	case len(versions) == 0 && len(claim.Projects) > 0:
		return nil, &SnapshotError{"the run has projects, and each has its own snapshots: name one of them: " +
			ProjectNames(claim.RunID, claim.Projects)}
	case len(versions) == 0:
		return nil, &SnapshotError{"the run has no workspace, so there are no snapshots"}
	}
	s, err := OpenStore(ctx, claim.Store)
	if err != nil {
		return nil, fmt.Errorf("the trees of the workspace are in the store: %w", err)
	}
	return &Snapshots{Versions: versions, dir: d, store: s}, nil
}

// Turns returns the versions that turns left.
func (s *Snapshots) Turns() []rundir.Version {
	return slices.DeleteFunc(slices.Clone(s.Versions),
		func(v rundir.Version) bool { return v.Cause != rundir.FromTurn })
}

// Turn returns the version that turn n left; turn 0 is the first one.
func (s *Snapshots) Turn(n int) (rundir.Version, error) {
	if n == 0 {
		return s.Versions[0], nil
	}
	turns := s.Turns()
	if n > 0 && n <= len(turns) {
		return turns[n-1], nil
	}
	return rundir.Version{},
		&SnapshotError{fmt.Sprintf("there is no turn %d: the run has had %d; turn 0 is its first tree", n, len(turns))}
}

// Compare compares two trees, named by their digests. drop removes its temporary files.
func (s *Snapshots) Compare(ctx context.Context, from, to string) (c *git.Comparison, drop func() error, err error) {
	return compareStored(ctx, s.store, from, to)
}

// Checkout makes the folder at dir contain exactly what turn n left. A folder with content is refused unless force
// allows removing it. A run directory, or a folder that contains the run's directory or lies in it, is always
// refused.
func (s *Snapshots) Checkout(ctx context.Context, n int, dir string, force bool) (rundir.Version, error) {
	v, err := s.Turn(n)
	if err != nil {
		return v, err
	}
	if err := s.mayHold(dir, force); err != nil {
		return v, err
	}
	_, err = tree.Checkout(ctx, s.store, store.Digest(v.Tree), dir, tree.Rules{})
	return v, err
}

// mayHold checks whether a tree may be written to a folder.
func (s *Snapshots) mayHold(dir string, force bool) error {
	if err := rundir.Writable(dir); err != nil {
		return err
	}
	place, err := resolved(dir)
	if err != nil {
		return err
	}
	run, err := resolved(s.dir.Root)
	if err != nil {
		return err
	}
	if contains(place, run) {
		return &SnapshotError{fmt.Sprintf("%s contains the run directory %s: nothing was changed; choose another "+
			"folder",
			dir, s.dir.Root)}
	}
	if force {
		return nil
	}
	return orForce(rundir.Vacant(dir), "with --force, what the snapshot does not have is deleted there")
}

// orForce adds the effect of force to the fix of a target error.
func orForce(err error, does string) error {
	var refused *rundir.TargetError
	if errors.As(err, &refused) {
		refused.Next += "; " + does
	}
	return err
}

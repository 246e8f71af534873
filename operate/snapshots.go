package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/passbook-run/passbook/repo"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/store/blame"
	"github.com/passbook-run/passbook/store/tree"
)

// Snapshots are the trees that a run's workspace has had: what they are comes from the directory, their contents from the store.
type Snapshots struct {
	Versions []rundir.Version // oldest first
	dir      rundir.Dir
	store    *store.Store
}

// SnapshotError says that what was asked of a run's snapshots cannot be done. Nothing was changed.
type SnapshotError struct{ Why string }

func (e *SnapshotError) Error() string { return e.Why }

// OpenSnapshots reads what versions a run has had. Without a workspace it is a [SnapshotError].
func OpenSnapshots(ctx context.Context, d rundir.Dir) (*Snapshots, error) {
	versions, err := d.Versions()
	if err != nil {
		return nil, err
	}
	if len(versions) == 0 {
		return nil, &SnapshotError{"the run has no workspace, so there are no snapshots"}
	}
	claim, err := d.Claim()
	if err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, claim.Store)
	if err != nil {
		return nil, fmt.Errorf("the trees of the workspace are in the store: %w", err)
	}
	return &Snapshots{Versions: versions, dir: d, store: s}, nil
}

// Close lets go of the store.
func (s *Snapshots) Close() error { return s.store.Close() }

// Turns are the versions that turns left.
func (s *Snapshots) Turns() []rundir.Version {
	return slices.DeleteFunc(slices.Clone(s.Versions), func(v rundir.Version) bool { return v.Cause != rundir.FromTurn })
}

// Turn is what turn n left; turn 0 is what the run began with.
func (s *Snapshots) Turn(n int) (rundir.Version, error) {
	if n == 0 {
		return s.Versions[0], nil
	}
	turns := s.Turns()
	if n > 0 && n <= len(turns) {
		return turns[n-1], nil
	}
	return rundir.Version{}, &SnapshotError{fmt.Sprintf("there is no turn %d: the run has had %d; turn 0 is what it began with", n, len(turns))}
}

// Tree lists what turn n left, as its manifest says. A manifest that was changed is an error; where it is missing, the store says it.
func (s *Snapshots) Tree(ctx context.Context, n int) (tree.Tree, error) {
	v, err := s.Turn(n)
	if err != nil {
		return tree.Tree{}, err
	}
	name := s.dir.Path(rundir.SnapshotManifest(n))
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return tree.Load(ctx, s.store, store.Digest(v.Tree))
	}
	if err != nil {
		return tree.Tree{}, err
	}
	t, err := tree.ReadManifest(raw)
	if err == nil && string(t.Digest()) != v.Tree {
		err = fmt.Errorf("it is of tree %s, and the run's events say %s", t.Digest(), v.Tree)
	}
	if err != nil {
		return tree.Tree{}, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// Compare sets two trees against each other, by their digests. drop removes what was made for it.
func (s *Snapshots) Compare(ctx context.Context, from, to string) (c *repo.Comparison, drop func() error, err error) {
	return compareStored(ctx, s.store, from, to)
}

// Blame says of every file which version last changed it: File.Tree is an index into the versions that come with it.
func (s *Snapshots) Blame(ctx context.Context) ([]blame.File, []rundir.Version, error) {
	trees, versions, err := s.inForce(ctx)
	return blame.Files(trees), versions, err
}

// Lines says it of every line of a file.
func (s *Snapshots) Lines(ctx context.Context, path string) (blame.Text, []rundir.Version, error) {
	trees, versions, err := s.inForce(ctx)
	if err != nil {
		return blame.Text{}, nil, err
	}
	text, err := blame.Lines(ctx, s.store, trees, path)
	return text, versions, err
}

// inForce loads the trees that no revert has left behind.
func (s *Snapshots) inForce(ctx context.Context) ([]tree.Tree, []rundir.Version, error) {
	versions := slices.DeleteFunc(slices.Clone(s.Versions), func(v rundir.Version) bool { return v.Abandoned })
	var trees []tree.Tree
	for i, v := range versions {
		if i > 0 && v.Tree == versions[i-1].Tree {
			trees = append(trees, trees[i-1])
			continue
		}
		t, err := tree.Load(ctx, s.store, store.Digest(v.Tree))
		if err != nil {
			return nil, nil, err
		}
		trees = append(trees, t)
	}
	return trees, versions, nil
}

// Checkout makes the folder at dir hold what turn n left, and nothing else. A folder that holds something is refused unless force says that this
// may go. A folder that holds the run's directory, or lies in it, is always refused, and so is one that is a run directory itself.
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

// mayHold says why a folder is not one to lay a tree down in.
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
		return &SnapshotError{fmt.Sprintf("%s contains the run directory %s: nothing was changed; choose another folder", dir, s.dir.Root)}
	}
	if force {
		return nil
	}
	return orForce(rundir.Vacant(dir), "with --force, what the snapshot does not have is deleted there")
}

// orForce adds what force does to what there is to do about a target.
func orForce(err error, does string) error {
	var refused *rundir.TargetError
	if errors.As(err, &refused) {
		refused.Next += "; " + does
	}
	return err
}

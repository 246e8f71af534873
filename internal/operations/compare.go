package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Compare compares the first and the current version of a run's workspace or artifact. drop removes its temporary
// files. A git workspace is compared by the commits of the run in the source repository.
// Trees of a folder come from the store, and an artifact from the run directory.
func Compare(ctx context.Context, d projector.Dir) (c *git.Comparison, drop func() error, err error) {
	meta, err := d.Meta()
	if err != nil {
		return nil, nil, err
	}
	nothing := func() error { return nil }
	switch w := meta.Workspace; {
	case w == nil:
		return compareArtifact(ctx, d)
	case w.Kind == run.WorkspaceGit:
		c, err = compareGit(ctx, d, *w)
		return c, nothing, err
	default:
		return compareTrees(ctx, d, *w)
	}
}

func compareGit(ctx context.Context, d projector.Dir, w rundir.Workspace) (*git.Comparison, error) {
	source, err := git.OpenReceived(ctx, w.Source)
	if err != nil {
		return nil, fmt.Errorf("the source with the commits of the run cannot be read: %w", err)
	}
	return source.Between(ctx, w.Base, cmp.Or(w.Commit, w.Base))
}

func compareArtifact(ctx context.Context, d projector.Dir) (*git.Comparison, func() error, error) {
	a, err := d.Artifact()
	if err != nil {
		return nil, nil, err
	}
	return inFolders(ctx, func(before, after string) error {
		if len(a.Seed) > 0 {
			if err := lay(before, a.File, a.Seed); err != nil {
				return err
			}
		}
		if a.Absent {
			return nil
		}
		return lay(after, a.File, a.Now)
	})
}

// compareTrees compares the first tree of a workspace with the current one.
func compareTrees(ctx context.Context, d projector.Dir, w rundir.Workspace) (*git.Comparison, func() error, error) {
	claim, err := d.Claim()
	if err != nil {
		return nil, nil, err
	}
	s, err := OpenStore(ctx, claim.Store)
	if err != nil {
		return nil, nil, fmt.Errorf("the trees of the workspace are in the store: %w", err)
	}
	return compareStored(ctx, s, w.Start, w.Tree)
}

// compareStored writes the files that differ between two trees, and no others.
func compareStored(ctx context.Context, s *store.Store, before, after string) (*git.Comparison, func() error, error) {
	from, err := tree.Load(ctx, s, store.Digest(before))
	if err != nil {
		return nil, nil, err
	}
	to, err := tree.Load(ctx, s, store.Digest(after))
	if err != nil {
		return nil, nil, err
	}
	return inFolders(ctx, func(before, after string) error {
		for _, c := range tree.Diff(from, to) {
			if err := layEntry(ctx, s, before, c.Before); err != nil {
				return err
			}
			if err := layEntry(ctx, s, after, c.After); err != nil {
				return err
			}
		}
		return nil
	})
}

// inFolders compares what fill writes into two folders.
func inFolders(ctx context.Context, fill func(before, after string) error) (c *git.Comparison, drop func() error,
	err error) {
	temp, err := os.MkdirTemp("", "passbook-compare-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	before, after := filepath.Join(temp, "before"), filepath.Join(temp, "after")
	for _, folder := range []string{before, after} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, nil, err
		}
	}
	if err := fill(before, after); err != nil {
		return nil, nil, err
	}
	return git.Folders(ctx, before, after)
}

func lay(folder, name string, data []byte) error {
	path := filepath.Join(folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// layEntry writes a file or symbolic link of a tree; folders are created for their files.
func layEntry(ctx context.Context, s *store.Store, folder string, e tree.Entry) error {
	path := filepath.Join(folder, filepath.FromSlash(e.Path))
	if e.IsFile() || e.Mode == tree.ModeSymlink {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
	}
	switch e.Mode {
	case tree.ModeFile, tree.ModeExecutable:
		if err := s.GetFile(ctx, e.Digest, path); err != nil {
			return err
		}
		if e.Mode == tree.ModeExecutable {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	case tree.ModeSymlink:
		return os.Symlink(e.Link, path)
	}
	return nil
}

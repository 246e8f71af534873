package operations

import (
	"cmp"
	"context"
	"fmt"

	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Compare compares the first and the current version of a run's workspace or artifact. drop removes its temporary
// files. A git workspace is compared by the commits of the run in the source repository.
// Trees of a folder come from the store, and an artifact from the run directory.
func Compare(ctx context.Context, d rundir.Dir) (c *git.Comparison, drop func() error, err error) {
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

func compareGit(ctx context.Context, d rundir.Dir, w rundir.Workspace) (*git.Comparison, error) {
	source, err := git.OpenReceived(ctx, w.Source)
	if err != nil {
		return nil, fmt.Errorf("the source with the commits of the run cannot be read: %w", err)
	}
	return source.Between(ctx, w.Base, cmp.Or(w.Commit, w.Base))
}

func compareArtifact(ctx context.Context, d rundir.Dir) (*git.Comparison, func() error, error) {
	a, err := d.Artifact()
	if err != nil {
		return nil, nil, err
	}
	var before, after []git.File
	if len(a.Seed) > 0 {
		before = append(before, git.File{Path: a.File, Mode: git.ModeFile, Content: git.Bytes(a.Seed)})
	}
	if !a.Absent {
		after = append(after, git.File{Path: a.File, Mode: git.ModeFile, Content: git.Bytes(a.Now)})
	}
	return git.Files(ctx, before, after)
}

// compareTrees compares the first tree of a workspace with the current one.
func compareTrees(ctx context.Context, d rundir.Dir, w rundir.Workspace) (*git.Comparison, func() error, error) {
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

// compareStored compares the files that differ between two trees.
func compareStored(ctx context.Context, s *store.Store, before, after string) (*git.Comparison, func() error, error) {
	from, err := tree.Load(ctx, s, store.Digest(before))
	if err != nil {
		return nil, nil, err
	}
	to, err := tree.Load(ctx, s, store.Digest(after))
	if err != nil {
		return nil, nil, err
	}
	var was, is []git.File
	for _, c := range tree.Diff(from, to) {
		if c.Before.IsFile() || c.Before.Mode == tree.ModeSymlink {
			was = append(was, workspace.File(ctx, s, c.Before))
		}
		if c.After.IsFile() || c.After.Mode == tree.ModeSymlink {
			is = append(is, workspace.File(ctx, s, c.After))
		}
	}
	return git.Files(ctx, was, is)
}

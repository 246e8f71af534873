package operations

import (
	"cmp"
	"context"
	"fmt"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/passbook-run/passbook/internal/repo"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// branchWorkspace creates a new run's checkout with the tree of a checkpoint.
func branchWorkspace(ctx context.Context, s *store.Store, plan *pipeline.Plan, dir projector.Dir, claim run.Claim,
	was run.Workspace, at run.State) (*run.Workspace, error) {
	checkout := dir.Path(layout.WorkspaceDir)
	rules := tree.Rules{}
	if plan.Workspace != nil {
		rules = workspace.Rules(*plan.Workspace)
	}
	out := was
	out.Tree = *at.Tree
	if was.Kind != run.WorkspaceGit {
		if err := dir.Inside().Mkdir(checkout, 0o755); err != nil {
			return nil, err
		}
		_, err := tree.Checkout(ctx, s, store.Digest(at.Tree.Digest), checkout, rules)
		return &out, err
	}
	r, err := repo.Open(ctx, was.Source)
	if err != nil {
		return nil, fmt.Errorf("the repository that run %s works on: %w", cmp.Or(claim.SourceRun, claim.RunID), err)
	}
	if err := hide(dir, r.Root()); err != nil {
		return nil, err
	}
	commit := at.Commit
	if commit == "" {
		commit = was.Base
	}
	def := Definition{Plan: plan}
	made, err := checkedOut(ctx, s, &def, dir, r,
		run.Workspace{Kind: "git", Source: was.Source, Base: commit, Branch: repo.BranchPrefix + claim.RunID}, false)
	if err != nil {
		return nil, err
	}
	out.Branch, out.Commit = made.Branch, ""
	if commit != was.Base {
		out.Commit = commit
	}
	out.Tree = made.Tree
	return &out, nil
}

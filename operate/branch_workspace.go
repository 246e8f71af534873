package operate

import (
	"context"
	"fmt"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/repo"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/store/tree"
)

// branchWorkspace lays down the tree of a checkpoint as a new run's own checkout.
func branchWorkspace(ctx context.Context, s *store.Store, plan *pipeline.Plan, dir rundir.Dir, claim run.Claim, was run.Workspace, at run.State) (*run.Workspace, error) {
	checkout := dir.Path(rundir.WorkspaceDir)
	rules := tree.Rules{}
	if plan.Workspace != nil {
		rules = activities.Rules(*plan.Workspace)
	}
	out := was
	out.Tree = *at.Tree
	if was.Kind != "git" {
		if err := dir.Disk.Mkdir(checkout, 0o755); err != nil {
			return nil, err
		}
		_, err := tree.Checkout(ctx, s, store.Digest(at.Tree.Digest), checkout, rules)
		return &out, err
	}
	r, err := repo.Open(ctx, was.Source)
	if err != nil {
		return nil, fmt.Errorf("the repository that run %s works on: %w", claim.SourceRun, err)
	}
	if err := hide(dir, r.Root()); err != nil {
		return nil, err
	}
	commit := at.Commit
	if commit == "" {
		commit = was.Base
	}
	def := Definition{Plan: plan}
	made, err := checkedOut(ctx, s, &def, dir, r, run.Workspace{Kind: "git", Source: was.Source, Base: commit, Branch: repo.BranchPrefix + claim.RunID}, false)
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

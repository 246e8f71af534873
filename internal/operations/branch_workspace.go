package operations

import (
	"cmp"
	"context"
	"fmt"

	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// branchWorkspace prepares the workspace of a new run at a checkpoint.
func (o Operator) branchWorkspace(ctx context.Context, dir rundir.Dir, claim run.Claim, pipeline string,
	was run.Workspace, at run.State) (*run.Workspace, error) {
	p := preparation{folders: workspace.In(o.Settings.StateDir), dir: dir, claim: claim}
	out := was
	out.Tree = *at.Tree
	if was.Kind != run.WorkspaceGit {
		return &out, p.link(out)
	}
	r, err := git.Open(ctx, was.Source)
	if err != nil {
		return nil, fmt.Errorf("the repository that run %s works on: %w", cmp.Or(claim.SourceRun, claim.RunID), err)
	}
	commit := cmp.Or(at.Commit, was.Base)
	out.Branch, out.Commit = branchOf(pipeline, claim.RunID), ""
	if commit != was.Base {
		out.Commit = commit
	}
	return &out, p.begin(ctx, r, out, commit)
}

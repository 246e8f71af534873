package activities

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
)

// ReadProject reads what a run across projects acts on: the project's own meta.json, and whether its workflow is open.
// The workflow is asked first: an end is on disk before the workflow ends.
func (a *Activities) ReadProject(ctx context.Context, in contract.ReadProjectInput) (contract.ProjectFound, error) {
	defer a.keepAlive(ctx)()
	var out contract.ProjectFound
	if !filepath.IsLocal(in.Alias) || filepath.Base(in.Alias) != in.Alias {
		return out, badInput("read the project: %q is not a folder of the run", in.Alias)
	}
	var err error
	if out.Closed, err = a.closed(ctx, in.Child); err != nil {
		return out, err
	}
	meta, err := a.open(filepath.Join(in.Dir, in.Alias)).Meta()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return out, nil
	case errors.Is(err, disk.ErrDamaged), err == nil && meta.RunID != in.Child:
		out.Found = run.Malformed
		return out, nil
	case err != nil:
		return out, err
	}
	s := meta.State
	out.Found, out.Status, out.Reason = run.Present, run.Status(meta.Status), meta.Reason
	out.Tree, out.Commit, out.USD, out.Unknown = s.Tree, s.Commit, s.Total(), s.UnknownCalls()
	if q, open := s.Asks(); open {
		out.Question = &run.Question{Kind: q.Kind, ID: q.ID, Text: q.Words(), Digest: q.Digest, Trigger: q.Trigger,
			Actions: q.Actions, Verdict: q.Verdict, Approved: q.Approved}
	}
	if s.Decided != nil {
		out.Decided = s.Decided.Action
	}
	return out, nil
}

// closed reports whether Temporal has no open workflow of a run.
func (a *Activities) closed(ctx context.Context, runID string) (bool, error) {
	if a.cfg.Client == nil {
		return false, nil
	}
	d, err := a.cfg.Client.DescribeWorkflowExecution(ctx, runID, "")
	if missing := (*serviceerror.NotFound)(nil); errors.As(err, &missing) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// JoinTrees stores a tree with the trees of all projects.
func (a *Activities) JoinTrees(ctx context.Context, in contract.JoinTreesInput) (run.Blob, error) {
	defer a.keepAlive(ctx)()
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return run.Blob{}, err
	}
	var parts []tree.Part
	for _, t := range in.Trees {
		parts = append(parts, tree.Part{Folder: t.Alias, Digest: store.Digest(t.Tree.Digest)})
	}
	saved, err := tree.Join(ctx, s, parts)
	if err != nil {
		return run.Blob{}, err
	}
	return workspace.Blob(saved), nil
}

// DeliverProject delivers the changes of a project that is done, or checks that they can be delivered.
func (a *Activities) DeliverProject(ctx context.Context,
	in contract.DeliverProjectInput) (contract.DeliverResult, error) {
	return a.deliver(ctx, in.Project, in.Prepare)
}

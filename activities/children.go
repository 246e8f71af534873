package activities

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// ReadChild reads what a run acts on: the child's own meta.json, and whether its workflow is open. The workflow is asked
// first: an end is on disk before the workflow ends.
func (a *Activities) ReadChild(ctx context.Context, in contract.ReadChildInput) (contract.ChildFound, error) {
	defer a.keepAlive(ctx)()
	var out contract.ChildFound
	if !filepath.IsLocal(in.Path) {
		return out, badInput("read the child: %q is not a folder of the run", in.Path)
	}
	known, open, err := a.execution(ctx, in.Child)
	if err != nil {
		return out, err
	}
	out.Closed = !open
	d := a.open(filepath.Join(in.Dir, filepath.FromSlash(in.Path)))
	meta, err := d.Meta()
	if errors.Is(err, fs.ErrNotExist) && known && !open && run.OfLane(in.Child) != "" {
		if err := a.restoreLane(ctx, in.Store, d, in.Child); err != nil {
			return out, err
		}
		meta, err = d.Meta()
	}
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
			Actions: q.Actions, Verdict: q.Verdict, Approved: q.Approved, Artifacts: q.Artifacts}
	}
	if s.Decided != nil {
		out.Decided = s.Decided.Action
	}
	if s.LaneOf == nil {
		return out, nil
	}
	out.Budget, out.Need, out.Cost = s.Budget, s.Need, s.ChildCost()
	if s.Status == run.Paused {
		out.Detail, err = pauseDetail(d)
	}
	return out, err
}

// pauseDetail is why a run is paused, in more words than its reason.
func pauseDetail(d rundir.Dir) (string, error) {
	const last = 64 << 10
	events, err := d.Recent(last)
	for _, e := range slices.Backward(events) {
		if e.Kind == run.KindRunPaused {
			return run.PayloadOf[run.RunPaused](e).Detail, err
		}
	}
	return "", err
}

// execution reports whether Temporal knows the workflow of a run, and whether it is open.
func (a *Activities) execution(ctx context.Context, runID string) (known, open bool, err error) {
	if a.cfg.Client == nil {
		return false, true, nil
	}
	d, err := a.cfg.Client.DescribeWorkflowExecution(ctx, runID, "")
	if missing := (*serviceerror.NotFound)(nil); errors.As(err, &missing) {
		return false, false, nil
	}
	return true, d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, err
}

// restoreLane writes the directory of a lane that was lost after the end of its workflow. An open one restores its own.
func (a *Activities) restoreLane(ctx context.Context, at string, d rundir.Dir, runID string) error {
	s, err := a.store(ctx, at)
	if err != nil {
		return err
	}
	src, err := a.history.Source(ctx, runID, "")
	if err == nil {
		_, err = d.Rebuild(ctx, blobs.Of(s), src)
	}
	if err != nil {
		return fmt.Errorf("restore %s of run %s: %w", d.Root, runID, err)
	}
	return nil
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

package activities

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/layout"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/repo"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// Deliver delivers a run's changes to a branch or to the source's checkout, all or none; a dry run only lists
// them. Delivering twice changes nothing.
func (a *Activities) Deliver(ctx context.Context, in contract.DeliverInput) (contract.DeliverResult, error) {
	return a.deliver(ctx, in, false)
}

// deliver implements Deliver. prepare only checks that the changes can be delivered.
func (a *Activities) deliver(ctx context.Context, in contract.DeliverInput,
	prepare bool) (contract.DeliverResult, error) {
	defer a.keepAlive(ctx)()
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.DeliverResult{}, err
	}
	plan, err := a.plan(ctx, s, in.Plan)
	if err != nil {
		return contract.DeliverResult{}, err
	}
	if plan.Delivery == nil {
		return contract.DeliverResult{}, badInput("read the plan: no delivery")
	}
	at := contract.Tree{PlanUse: in.PlanUse, Workspace: in.Workspace, Commit: in.Commit}
	w, err := openCheckout(ctx, at, a.open(in.Dir).Path(layout.WorkspaceDir))
	if err != nil {
		return contract.DeliverResult{}, explainMissingSource(ctx, in.Workspace.Source, err)
	}
	d := delivery{in: in, to: *plan.Delivery, w: w, prepare: prepare}
	if err := d.findChanges(ctx); err != nil {
		return contract.DeliverResult{}, explainMissingSource(ctx, in.Workspace.Source, err)
	}
	if len(d.patch) == 0 {
		return d.res, nil
	}
	diff, err := blobs.Put(ctx, s, d.patch)
	if err != nil {
		return contract.DeliverResult{}, err
	}
	d.res.Diff = &diff
	if in.DryRun {
		return d.res, nil
	}
	if len(d.converted) > 0 {
		d.decline("the run changes .gitattributes so that git stores other bytes of these files than those that were "+
			"judged: have the run undo that change, or skip the delivery", d.converted)
		return d.res, nil
	}
	return d.res, d.deliver(ctx)
}

type delivery struct {
	in     contract.DeliverInput
	to     pipeline.Delivery
	w      *repo.Worktree
	source *repo.Repo
	patch  []byte
	res    contract.DeliverResult

	converted []string // files that git has stored with other bytes than those that were judged

	prepare bool // only check that the changes can be delivered
}

// findChanges reads the changes to deliver: what was accepted, and nothing else in the checkout.
func (d *delivery) findChanges(ctx context.Context) error {
	commit := d.in.Commit
	if commit == "" {
		commit = d.in.Workspace.Base
	}
	accepted, err := d.w.Between(ctx, d.in.Workspace.Base, commit)
	if err != nil {
		return err
	}
	changes, err := accepted.Changes(ctx, d.to.Paths...)
	if err != nil || len(changes) == 0 {
		return err
	}
	paths := repo.Paths(changes)
	d.res.Files = len(paths)
	for _, own := range d.in.Workspace.Definition {
		if slices.Contains(paths, own) && len(d.res.Definition) < 20 {
			d.res.Definition = append(d.res.Definition, own)
		}
	}
	if d.patch, err = accepted.Patch(ctx, d.to.Paths...); err != nil {
		return err
	}
	all, err := accepted.Changes(ctx)
	if err != nil {
		return err
	}
	d.converted, err = d.w.Converted(ctx, d.in.Workspace.Base, commit, all)
	return err
}

func (d *delivery) deliver(ctx context.Context) error {
	var err error
	d.source, err = repo.Open(ctx, d.in.Workspace.Source)
	if sourceMissing(err) {
		d.decline(
			fmt.Sprintf("the source %s no longer exists (%v): restore it and retry, or skip the delivery",
				d.in.Workspace.Source, err), nil,
		)
		return nil
	}
	if err != nil {
		return err
	}
	if d.to.To == "branch" && d.in.Action != run.ActionApply {
		return d.toBranch(ctx)
	}
	return d.toCheckout(ctx)
}

// sourceMissing reports whether [repo.Open] found no repository to deliver to.
func sourceMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, repo.ErrNotRepository) || errors.Is(err, repo.ErrBare) ||
		errors.Is(err, repo.ErrUnborn)
}

// explainMissingSource explains why the run's checkout cannot be read. Its commits are in the source: without it,
// a retry cannot succeed.
func explainMissingSource(ctx context.Context, source string, err error) error {
	if _, open := repo.Open(ctx, source); sourceMissing(open) {
		return badInput("the source %s with the commits of the run no longer exists (%v): restore it, then resume the run",
			source, err)
	}
	return err
}

// toBranch commits all changes to a branch that is created or fast-forwarded.
func (d *delivery) toBranch(ctx context.Context) error {
	branch := d.to.Branch
	if branch == "" {
		branch = "passbook-" + d.in.RunID[:min(8, len(d.in.RunID))]
	}
	if d.prepare {
		if err := d.source.CanCommitPatch(ctx, branch, d.in.Workspace.Base, d.patch, d.trailer()); err != nil {
			return d.asQuestion(err)
		}
		d.res.To, d.res.Location = "branch", branch
		return nil
	}
	commit, err := d.source.CommitPatch(ctx, branch, d.in.Workspace.Base, d.patch, d.message(), d.trailer())
	if err != nil {
		return d.asQuestion(err)
	}
	d.res.Delivered, d.res.To, d.res.Location, d.res.Commit = true, "branch", branch, commit
	return nil
}

// toCheckout applies the changes to the source's checkout, and commits exactly them if configured.
func (d *delivery) toCheckout(ctx context.Context) error {
	d.res.To, d.res.Location = "checkout", d.source.Root()
	commit := d.to.Commit && d.in.Action != run.ActionApply
	if id, err := d.source.CommitWith(ctx, d.trailer()); err != nil || id != "" {
		d.res.Delivered, d.res.Commit = id != "", id
		return err
	}
	if err := d.apply(ctx, commit); err != nil {
		return d.asQuestion(err)
	}
	if d.prepare {
		return nil
	}
	if !commit {
		d.res.Delivered = true
		return nil
	}
	paths, err := d.source.Touched(ctx, d.patch)
	if err != nil {
		return err
	}
	if d.res.Commit, err = d.source.CommitPaths(ctx, d.message(), paths...); err != nil {
		return d.asQuestion(err)
	}
	d.res.Delivered = true
	return nil
}

// apply applies the changes unless the source has them. A checkout that cannot take the changes or the commit is
// left unchanged.
func (d *delivery) apply(ctx context.Context, commit bool) error {
	applied, err := d.source.Applied(ctx, d.patch)
	if err != nil || applied && !commit {
		return err
	}
	if err := d.source.Ready(ctx, d.patch, applied, commit); err != nil || applied {
		return err
	}
	if d.prepare {
		return d.source.CanApply(ctx, d.patch)
	}
	return d.source.Apply(ctx, d.patch)
}

// asQuestion turns an error about the target's state into a question for an operator. Other errors are retried.
func (d *delivery) asQuestion(err error) error {
	var conflict *repo.ConflictError
	var forward *repo.NotForwardError
	var refused *repo.RefusedError
	var branch *repo.BranchError
	switch {
	case errors.As(err, &conflict):
		d.decline(doesNotApply+err.Error(), conflict.Paths)
	case errors.As(err, &forward):
		d.decline(doesNotApply+err.Error(), nil)
	case errors.As(err, &refused):
		d.decline("the target cannot take the changes: "+err.Error(), refused.Paths)
	case errors.As(err, &branch) && branch.Path != "":
		d.decline("the target cannot take the changes: "+err.Error()+": switch to another branch there and retry", nil)
	default:
		return err
	}
	return nil
}

const doesNotApply = "the target has changed and the changes no longer apply: "

// Limits of a result: it is part of the history and of the question.
const (
	maxReasonBytes = 2 << 10 // bytes
	maxDirtyFiles  = 20
)

// decline records why nothing was delivered, and the first files in the way.
func (d *delivery) decline(why string, dirty []string) {
	if len(why) > maxReasonBytes {
		why = strings.ToValidUTF8(why[:maxReasonBytes-len("…")], "") + "…"
	}
	d.res.Reason, d.res.Dirty = why, dirty[:min(maxDirtyFiles, len(dirty))]
}

// trailer identifies a delivery by run and content. Other commits contain the run id too, and a reset run may
// deliver something else.
func (d *delivery) trailer() string {
	sum := sha256.Sum256(d.patch)
	return fmt.Sprintf("Passbook-Delivery: %s %x", d.in.RunID, sum[:8])
}

// message returns the commit message of the definition or the workflow, with the trailers.
func (d *delivery) message() string {
	text := d.in.Message
	if d.to.Message != "" {
		text = d.to.Message + "\n\nPassbook-Run: " + d.in.RunID
	}
	return strings.TrimRight(text, "\n") + "\n" + d.trailer() + "\n"
}

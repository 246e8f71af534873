package activities

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
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
	source, err := git.Open(ctx, in.Workspace.Source)
	if err != nil {
		return contract.DeliverResult{}, explainMissingSource(ctx, in.Workspace.Source, err)
	}
	d := delivery{in: in, to: *plan.Delivery, source: source, prepare: prepare}
	if err := d.findChanges(ctx); err != nil || len(d.patch) == 0 {
		return d.res, err
	}
	diff, err := blobs.Put(ctx, s, d.patch)
	if err != nil {
		return contract.DeliverResult{}, err
	}
	d.res.Diff = &diff
	if in.DryRun {
		return d.res, nil
	}
	if unlike, err := d.unlikeJudged(ctx, s); err != nil {
		return d.res, d.asQuestion(err)
	} else if unlike {
		return d.res, nil
	}
	if d.to.OpensPull() && in.Action != run.ActionApply {
		err = a.toPull(ctx, &d)
	} else {
		err = d.deliver(ctx)
	}
	if err != nil {
		return d.res, err
	}
	if d.res.Delivered && !plan.Workspace.Keep && plan.After == nil {
		a.warn(ctx, "remove the workspace of a delivered run", a.folderOfRun(in), a.removeDelivered(ctx, s, in))
	}
	return d.res, nil
}

func (a *Activities) folderOfRun(in contract.DeliverInput) string {
	return a.folders.Path(in.Workspace.Source, in.RunID, "")
}

// removeDelivered removes the folders of a run whose result is elsewhere. A workspace with changes that the run did not
// make stays.
func (a *Activities) removeDelivered(ctx context.Context, s *store.Store, in contract.DeliverInput) error {
	if in.Tree == nil {
		return nil
	}
	w, err := a.folders.Lock(ctx, a.folderOfRun(in))
	if err != nil {
		return err
	}
	t := contract.Tree{PlanUse: in.PlanUse, Workspace: in.Workspace, Tree: *in.Tree, Commit: in.Commit}
	rules, err := a.rules(ctx, s, t)
	var changed []string
	if err == nil {
		changed, err = w.Changed(ctx, s, rules)
	}
	if err = errors.Join(err, w.Unlock()); err != nil || len(changed) > 0 {
		return err
	}
	return errors.Join(a.folders.Remove(ctx, in.RunID), a.open(in.Dir).UnlinkWorkspace())
}

type delivery struct {
	in     contract.DeliverInput
	to     pipeline.Delivery
	source *git.Repo
	commit string   // that has what was accepted
	paths  []string // to deliver
	patch  []byte
	res    contract.DeliverResult

	prepare bool // only check that the changes can be delivered
}

// findChanges reads the changes to deliver: what was accepted, and nothing else.
func (d *delivery) findChanges(ctx context.Context) error {
	if d.commit = d.in.Commit; d.commit == "" {
		d.commit = d.in.Workspace.Base
	}
	accepted, err := d.source.Between(ctx, d.in.Workspace.Base, d.commit)
	if err != nil {
		return err
	}
	changes, err := accepted.Changes(ctx, d.to.Paths...)
	if err != nil || len(changes) == 0 {
		return err
	}
	d.paths = git.Paths(changes)
	d.res.Files = len(d.paths)
	for _, own := range d.in.Workspace.Definition {
		if slices.Contains(d.paths, own) && len(d.res.Definition) < 20 {
			d.res.Definition = append(d.res.Definition, own)
		}
	}
	d.patch, err = accepted.Patch(ctx, d.to.Paths...)
	return err
}

// unlikeJudged declines a delivery whose commit is not, byte for byte, what was judged.
func (d *delivery) unlikeJudged(ctx context.Context, s *store.Store) (bool, error) {
	if d.in.Tree == nil {
		return false, nil
	}
	judged, err := workspace.FilesSince(ctx, s, d.in.Workspace.Tree, *d.in.Tree)
	if err != nil {
		return false, err
	}
	start := cmp.Or(d.in.Workspace.Commit, d.in.Workspace.Base)
	list, err := d.source.Differences(ctx, d.commit, start, judged)
	if err != nil || len(list) == 0 {
		return false, err
	}
	var files []string
	for _, f := range list {
		files = append(files, f.Path)
	}
	d.decline(fmt.Sprintf("the commit is not what was judged: %s: %s; have the run undo that change, or skip the delivery",
		list[0].Path, list[0].Why), slices.Compact(files))
	return true, nil
}

func (d *delivery) deliver(ctx context.Context) error {
	if d.to.To != "branch" || d.in.Action == run.ActionApply {
		return d.toCheckout(ctx)
	}
	_, out, err := d.source.Head(ctx)
	if err != nil {
		return err
	}
	if out == d.branch() {
		return d.toCheckout(ctx)
	}
	return d.toBranch(ctx)
}

// explainMissingSource explains why the run's checkout cannot be read. Its commits are in the source: without it,
// a retry cannot succeed.
func explainMissingSource(ctx context.Context, source string, err error) error {
	if _, open := git.Open(ctx, source); git.Missing(open) {
		return badInput("the source %s with the commits of the run no longer exists (%v): restore it, then resume the run",
			source, err)
	}
	return err
}

// branch is the branch that gets the changes.
func (d *delivery) branch() string {
	return cmp.Or(d.to.Branch, "passbook-"+d.in.RunID[:min(8, len(d.in.RunID))])
}

// delivered are the changes for git.
func (d *delivery) delivered() git.Delivered {
	return git.Delivered{Branch: d.branch(), Base: d.in.Workspace.Base, Commit: d.commit, Paths: d.paths,
		Message: d.message(), Trailer: d.trailer(), DryRun: d.prepare}
}

// toBranch commits all changes to a branch that is created or moved forward.
func (d *delivery) toBranch(ctx context.Context) error {
	commit, err := d.source.CommitOn(ctx, d.delivered())
	if err != nil {
		return d.asQuestion(err)
	}
	d.res.Delivered, d.res.To, d.res.Location, d.res.Commit = !d.prepare, "branch", d.branch(), commit
	return nil
}

// toCheckout writes the changes to the source's checkout, and commits exactly them if configured.
func (d *delivery) toCheckout(ctx context.Context) error {
	d.res.To, d.res.Location = "checkout", d.source.Root()
	to := d.delivered()
	if !d.to.Commit || d.in.Action == run.ActionApply {
		to.Message = ""
	}
	commit, err := d.source.Apply(ctx, to)
	if err != nil {
		return d.asQuestion(err)
	}
	d.res.Delivered, d.res.Commit = !d.prepare || commit != "", commit
	return nil
}

// asQuestion turns an error about the target's state into a question for an operator. Other errors are retried.
func (d *delivery) asQuestion(err error) error {
	var conflict *git.ConflictError
	var refused *git.RefusedError
	var branch *git.BranchError
	switch {
	case errors.As(err, &conflict):
		d.decline(doesNotApply+err.Error(), conflict.Paths)
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

package activities

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/repo"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/work"
)

// Deliver brings a run's changes to a branch or into the source's checkout, or only looks at what they are. Either all of them are delivered or
// none; delivering again changes nothing.
func (a *Activities) Deliver(ctx context.Context, in work.DeliverInput) (work.DeliverResult, error) {
	defer a.alive(ctx)()
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return work.DeliverResult{}, err
	}
	plan, err := a.plan(ctx, s, in.Plan)
	if err != nil {
		return work.DeliverResult{}, err
	}
	if plan.Delivery == nil {
		return work.DeliverResult{}, badInput("the plan says nothing of a delivery")
	}
	at := work.Tree{Plan: in.Plan, Workspace: in.Workspace, Commit: in.Commit}
	w, err := checkoutOf(ctx, at, a.cfg.Open(in.Dir).Path(rundir.WorkspaceDir))
	if err != nil {
		return work.DeliverResult{}, orGone(ctx, in.Workspace.Source, err)
	}
	d := delivery{in: in, to: *plan.Delivery, w: w}
	if err := d.find(ctx); err != nil {
		return work.DeliverResult{}, orGone(ctx, in.Workspace.Source, err)
	}
	if len(d.patch) == 0 {
		return d.res, nil
	}
	diff, err := keepData(ctx, s, d.patch)
	if err != nil {
		return work.DeliverResult{}, err
	}
	d.res.Diff = &diff
	if in.Look {
		return d.res, nil
	}
	return d.res, d.make(ctx)
}

// delivery is one delivery under way.
type delivery struct {
	in     work.DeliverInput
	to     pipeline.Delivery
	w      *repo.Worktree
	source *repo.Repo
	patch  []byte
	res    work.DeliverResult
}

// find gets the changes of the run, as far as they are to be delivered: what was accepted, and nothing else that lies in its checkout.
func (d *delivery) find(ctx context.Context) error {
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
	d.res.Files = len(repo.Paths(changes))
	d.patch, err = accepted.Patch(ctx, d.to.Paths...)
	return err
}

func (d *delivery) make(ctx context.Context) error {
	var err error
	d.source, err = repo.Open(ctx, d.in.Workspace.Source)
	if isGone(err) {
		d.ask(fmt.Sprintf("the source %s is not there any more: put it back, and try again, or skip the delivery (%v)", d.in.Workspace.Source, err), nil)
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

// isGone says whether an error of [repo.Open] is that there is no repository to deliver to.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, repo.ErrNotRepository) || errors.Is(err, repo.ErrBare) || errors.Is(err, repo.ErrUnborn)
}

// orGone is why the run's own checkout cannot be read. Its commits lie in the source: without that, no more tries help.
func orGone(ctx context.Context, source string, err error) error {
	if _, open := repo.Open(ctx, source); isGone(open) {
		return badInput("the source %s, which holds the commits of the run, is not there any more: put it back, and `starter resume` the run (%v)", source, err)
	}
	return err
}

// toBranch makes one commit of all changes, on a branch that is made or moved forward.
func (d *delivery) toBranch(ctx context.Context) error {
	branch := d.to.Branch
	if branch == "" {
		branch = "passbook-" + d.in.RunID[:min(8, len(d.in.RunID))]
	}
	commit, err := d.source.CommitPatch(ctx, branch, d.in.Workspace.Base, d.patch, d.message(), d.trailer())
	if err != nil {
		return d.asked(err)
	}
	d.res.Delivered, d.res.To, d.res.Where, d.res.Commit = true, "branch", branch, commit
	return nil
}

// toCheckout applies the changes to the source's checkout, and commits exactly them where that is wanted.
func (d *delivery) toCheckout(ctx context.Context) error {
	d.res.To, d.res.Where = "checkout", d.source.Root()
	commit := d.to.Commit && d.in.Action != run.ActionApply
	if id, err := d.source.CommitWith(ctx, d.trailer()); err != nil || id != "" {
		d.res.Delivered, d.res.Commit = id != "", id
		return err
	}
	if err := d.apply(ctx, commit); err != nil {
		return d.asked(err)
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
		return d.asked(err)
	}
	d.res.Delivered = true
	return nil
}

// apply brings the changes into the source's files, if they are not there yet. A checkout that cannot take them, or the commit, is left as it is.
func (d *delivery) apply(ctx context.Context, commit bool) error {
	applied, err := d.source.Applied(ctx, d.patch)
	if err != nil || applied && !commit {
		return err
	}
	if err := d.source.Ready(ctx, d.patch, applied, commit); err != nil || applied {
		return err
	}
	return d.source.Apply(ctx, d.patch)
}

// asked makes an error that says how the target stands a question: somebody has to decide. Every other one stays an error, and is tried again.
func (d *delivery) asked(err error) error {
	var conflict *repo.ConflictError
	var forward *repo.NotForwardError
	var refused *repo.RefusedError
	var branch *repo.BranchError
	switch {
	case errors.As(err, &conflict):
		d.ask(unfit+err.Error(), conflict.Paths)
	case errors.As(err, &forward):
		d.ask(unfit+err.Error(), nil)
	case errors.As(err, &refused):
		d.ask("the target cannot take the changes as it stands: "+err.Error(), refused.Paths)
	case errors.As(err, &branch) && branch.Path != "":
		d.ask("the target cannot take the changes as it stands: "+err.Error()+": switch to another branch there, and try again", nil)
	default:
		return err
	}
	return nil
}

const unfit = "the target has changed, and the changes do not fit it any more: "

// What a result says at most: it stands in the history, and in the question. Why says how many files more there are.
const (
	mostWhy   = 2 << 10 // bytes
	mostDirty = 20
)

// ask notes why nothing was delivered, and the first files that are in the way.
func (d *delivery) ask(why string, dirty []string) {
	if len(why) > mostWhy {
		why = strings.ToValidUTF8(why[:mostWhy-len("…")], "") + "…"
	}
	d.res.Why, d.res.Dirty = why, dirty[:min(mostDirty, len(dirty))]
}

// trailer is how a delivery is known again: by the run and by what is delivered. Other commits name the run too, and a run that was reset may
// deliver something else.
func (d *delivery) trailer() string {
	sum := sha256.Sum256(d.patch)
	return fmt.Sprintf("Passbook-Delivery: %s %x", d.in.RunID, sum[:8])
}

// message is the definition's own or the workflow's, and has the trailers at its end.
func (d *delivery) message() string {
	text := d.in.Message
	if d.to.Message != "" {
		text = d.to.Message + "\n\nPassbook-Run: " + d.in.RunID
	}
	return strings.TrimRight(text, "\n") + "\n" + d.trailer() + "\n"
}

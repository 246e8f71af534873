package workflows

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// workspace returns the current workspace, or nil for a run without one.
func (e *engine) workspace() *contract.Tree {
	w, s := e.in.Start.Workspace, e.j.state
	if len(s.Projects) > 0 && s.Tree != nil {
		return &contract.Tree{PlanUse: e.planUse(), Workspace: run.Workspace{Kind: run.WorkspaceProjects}, Tree: *s.Tree}
	}
	if w == nil || s.Tree == nil {
		return nil
	}
	return &contract.Tree{PlanUse: e.planUse(), Workspace: *w, Tree: *s.Tree, Commit: s.Commit}
}

// changesOf returns the event about the changes of a pass. Those of a lane are synced when its run merges it.
func (p *pass) changesOf(ctx workflow.Context, res *contract.PassResult) (*run.WorkspaceUpdated, error) {
	if p.e.in.Start.Lane == nil {
		return p.syncWorkspace(ctx, res)
	}
	if res.Changes == nil || res.Outcome != run.CategoryOK {
		return nil, nil
	}
	ev := *res.Changes
	ev.Step, ev.Call = p.step.Key, p.callID
	return &ev, nil
}

// syncWorkspace updates the run's checkout to what a pass left, and returns the event to journal. It runs before
// the pass settles, so that the journal has both events or none and the sync can be repeated.
func (p *pass) syncWorkspace(ctx workflow.Context, res *contract.PassResult) (*run.WorkspaceUpdated, error) {
	if res.Changes == nil || res.Outcome != run.CategoryOK {
		return nil, nil
	}
	ev := *res.Changes
	ev.Step, ev.Call = p.step.Key, p.callID
	in := contract.SyncWorkspaceInput{Target: p.e.in.Target, Tree: *p.e.workspace(), Message: p.commitMessage()}
	in.Tree.Tree, in.Previous = ev.Tree, p.e.j.state.Tree
	var out contract.SyncWorkspaceResult
	if err := p.e.runCheckoutActivity(ctx, "sync the changes of "+p.title()+" to the checkout", contract.SyncWorkspace,
		&in, &out); err != nil {
		return nil, fmt.Errorf("sync the changes of %s to the checkout: %w", p.title(), err)
	}
	ev.Commit = out.Commit
	return &ev, p.e.journalRecovered(ctx, "", out.Recovered, 0)
}

// slot names the folder that the call works in. Lanes have their own, and so have the members of a group, which work at
// the same time.
func (p *pass) slot() string {
	var names []string
	if p.step.Fresh != "" {
		return contract.FreshSlot
	}
	if l := p.e.in.Start.Lane; l != nil {
		names = append(names, fmt.Sprintf("lane-%d", l.Slot))
	}
	if i := slices.Index(p.group, p); i > 0 {
		names = append(names, fmt.Sprintf("member-%d", i))
	}
	return strings.Join(names, "-")
}

// scope returns the declared scope that the changes of a pass are compared with, or nil.
func (p *pass) scope() *run.Scope {
	if p.role.Gives != pipeline.GivesChanges {
		return nil
	}
	return p.e.j.state.Scope
}

// journalSetup journals that the workspace of a pass was set up before it.
func (p *pass) journalSetup(ctx workflow.Context, res *contract.PassResult) error {
	if res.Setup == nil || res.Reused {
		return nil
	}
	ev := *res.Setup
	ev.Step, ev.Call = p.step.Key, p.callID
	return p.e.j.emit(ctx, run.KindWorkspaceSetup, p.e.round.Stage, ev)
}

// journalTampered journals which protected files a pass changed.
func (p *pass) journalTampered(ctx workflow.Context, res *contract.PassResult) error {
	if res.Tampered == nil || res.Outcome != run.CategoryOK {
		return nil
	}
	ev := *res.Tampered
	ev.Step, ev.Call = p.step.Key, p.callID
	return p.e.j.emit(ctx, run.KindWorkspaceTampered, p.e.round.Stage, ev)
}

// withTampered adds to the result of a command that protected files were restored before it.
func (p *pass) withTampered(end *run.PassEnd) {
	t := p.e.j.state.Tampered
	if p.step.Kind != pipeline.KindRun || t == nil {
		return
	}
	end.Tampered = t
	end.Validation.Warnings = append(slices.Clone(end.Validation.Warnings), t.Warning())
}

func (p *pass) commitMessage() string {
	return fmt.Sprintf("%s\n\nPassbook-Run: %s\nPassbook-Step: %s\n", p.step.DescriptionOf(p.member, p.at.Round),
		p.e.in.Target.RunID, p.step.Key)
}

// value returns what `until` compares: a command's outcome, a role's score or verdict.
func (p *pass) value(res *contract.PassResult) string {
	switch {
	case p.step.As == "":
		return ""
	case p.step.Kind == pipeline.KindRun:
		return res.Value
	case p.role.Score != "" && res.Score != nil:
		return strconv.FormatFloat(*res.Score, 'f', -1, 64)
	case p.role.Score != "":
		return "null"
	}
	return res.Verdict
}

// runCheckoutActivity runs an activity on a checkout. After six failed attempts the run pauses; a resume tries
// again, and a revert ends the step.
func (e *engine) runCheckoutActivity(ctx workflow.Context, summary, activity string, in targetSetter, out any) error {
	for {
		failed, err := e.tryCheckoutActivity(ctx, summary, activity, in, out)
		if failed == nil || err != nil {
			return err
		}
		if err := e.pause(ctx, run.PassFailed, summary+": "+errorMessage(failed), ""); err != nil {
			return err
		}
		if err := e.pauseIfRequested(ctx, false); err != nil {
			return err
		}
	}
}

// tryCheckoutActivity runs an activity on a checkout as soon as its host can. failed: six attempts failed.
func (e *engine) tryCheckoutActivity(ctx workflow.Context, summary, activity string, in targetSetter,
	out any) (failed, err error) {
	for away, stale := 0, 0; ; {
		asked := e.control.retryRequests
		in.SetTarget(e.target())
		err := workflow.ExecuteActivity(e.checkoutOptions(ctx, summary), activity, in).Get(ctx, out)
		switch {
		case isType(err, contract.ErrNewer):
			err = e.requireCurrent(ctx, stale, err)
			stale++
		case err == nil, ctx.Err() != nil, isType(err, contract.ErrBadInput),
			isType(err, contract.ErrClaimed):
			return nil, err
		case isType(err, contract.ErrNoStore):
			err = e.awaitRetry(ctx, away, summary+": "+errorMessage(err), never)
			away++
		case isType(err, contract.ErrNoSlot):
			continue
		case isType(err, contract.ErrDirectoryLost):
			err = e.j.rebuildLost(ctx)
		case isType(err, contract.ErrDiskFull):
			err = e.awaitDiskSpace(ctx, err, asked)
		default:
			return err, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

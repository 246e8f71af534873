package workflows

import (
	"errors"
	"fmt"
	"strconv"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// tree is the workspace as it stands; nil for a run without one.
func (e *engine) tree() *work.Tree {
	w, s := e.in.Start.Workspace, e.j.state
	if w == nil || s.Tree == nil {
		return nil
	}
	return &work.Tree{Plan: e.in.Start.Plan, Workspace: *w, Tree: *s.Tree, Commit: s.Commit}
}

// carry brings the run's own checkout to what a pass left, and gives what is to be written down of it. That comes before the pass is settled: both
// are in the journal, or none, and the checkout can be brought there again.
func (p *pass) carry(ctx workflow.Context, res *work.PassResult) (*run.WorkspaceUpdated, error) {
	if res.Changes == nil || res.Outcome != "ok" {
		return nil, nil
	}
	ev := *res.Changes
	ev.Step, ev.Call = p.step.Key, p.id
	in := work.CarryInput{Target: p.e.in.Target, Tree: *p.e.tree(), Message: p.commitMessage()}
	in.Tree.Tree, in.Was = ev.Tree, p.e.j.state.Tree
	var out work.CarryResult
	if err := p.e.onTree(ctx, "carry the changes of "+p.title()+" to the checkout", work.Carry, &in, &out); err != nil {
		return nil, fmt.Errorf("carry the changes of %s to the checkout: %w", p.title(), err)
	}
	ev.Commit = out.Commit
	return &ev, p.e.noteTroubles(ctx, "", out.Troubles, 0)
}

func (p *pass) commitMessage() string {
	return fmt.Sprintf("%s\n\nPassbook-Run: %s\nPassbook-Step: %s\n", p.step.DescriptionOf(p.member, p.at.Round), p.e.in.Target.RunID, p.step.Key)
}

// value is what `until` compares with the name of a step: a command's outcome, a role's score or verdict.
func (p *pass) value(res *work.PassResult) string {
	switch {
	case p.step.As == "":
		return ""
	case p.step.Kind == "run":
		return res.Value
	case p.role.Score != "" && res.Score != nil:
		return strconv.FormatFloat(*res.Score, 'f', -1, 64)
	case p.role.Score != "":
		return "null"
	}
	return res.Verdict
}

// onTree has work on a checkout done. What six attempts cannot do rests the run and says why; it is tried again when somebody resumes.
func (e *engine) onTree(ctx workflow.Context, summary, activity string, in targeted, out any) error {
	if err := e.behindReset(ctx); err != nil {
		return err
	}
	for away := 0; ; {
		asked := e.control.tries
		err := e.atHome(ctx, func() error {
			in.Moved(e.in.Target)
			return workflow.ExecuteActivity(e.trees(ctx, summary), activity, in).Get(ctx, out)
		})
		switch {
		case isType(err, work.ErrFinal):
			return errors.Join(err, e.look(ctx))
		case err == nil, ctx.Err() != nil, isType(err, work.ErrBadInput), isType(err, work.ErrStale), isType(err, work.ErrClaimed):
			return err
		case isType(err, work.ErrNoStore):
			err = e.await(ctx, away, summary+": "+message(err), never)
			away++
		case isType(err, work.ErrNoSlot):
			continue
		case isType(err, work.ErrDiskFull):
			err = e.awaitRoom(ctx, err, asked)
		default:
			if err = e.pause(ctx, run.PassFailed, summary+": "+message(err), ""); err == nil {
				err = e.rest(ctx, false)
			}
		}
		if err != nil {
			return err
		}
	}
}

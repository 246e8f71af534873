package workflows

import (
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

// carry brings the run's own checkout to what a pass left, and writes down that this is the tree now. The checkout comes first: it can be brought
// there again, and the commit that holds the tree is part of the record.
func (p *pass) carry(ctx workflow.Context, res *work.PassResult) error {
	if res.Changes == nil {
		return nil
	}
	ev := *res.Changes
	ev.Step, ev.Call = p.step.Key, p.id
	in := work.CarryInput{Target: p.e.in.Target, Tree: *p.e.tree(), Message: p.commitMessage()}
	in.Tree.Tree = ev.Tree
	var out work.CarryResult
	if err := p.e.onDisk(ctx, "carry the changes of "+p.title()+" to the checkout", work.Carry, in, &out); err != nil {
		return fmt.Errorf("carry the changes of %s to the checkout: %w", p.title(), err)
	}
	ev.Commit = out.Commit
	return p.e.j.emit(ctx, run.KindWorkspaceUpdated, p.e.round.Stage, ev)
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

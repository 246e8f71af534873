package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// startMerge merges the next lane in the order of the list, if it has finished, beside the work of the others.
func (e *engine) startMerge(ctx workflow.Context) {
	l := e.j.state.Lanes
	if e.merging || len(l.Finished) == 0 || l.Finished[0].Index != l.Merged || e.workspace() == nil || !e.mayStep(ctx) {
		return
	}
	e.merging = true
	workflow.GoNamed(ctx, "merge "+l.Finished[0].Name, func(ctx workflow.Context) {
		e.mergeErr = e.merge(ctx)
		e.merging = false
		e.laneSteps++
	})
}

// merge merges the first of the finished lanes.
func (e *engine) merge(ctx workflow.Context) error {
	l := e.j.state.Lanes
	row := l.Finished[0]
	in := contract.MergeInput{Lane: *row.Tree, Base: e.j.state.BaseOf(row)}
	in.Target, in.Tree = e.in.Target, *e.workspace()
	in.Message = fmt.Sprintf("%s: %s\n\nPassbook-Run: %s\nPassbook-Step: %s/%s\n", e.round.Title, row.Name,
		e.in.Target.RunID, e.round.Stage, row.Key)
	var out contract.MergeResult
	summary := "merge the changes of " + row.Name
	if err := e.runCheckoutActivity(ctx, summary, contract.MergeLane, &in, &out); err != nil {
		return fmt.Errorf("%s: %w", summary, err)
	}
	if out.Count > 0 {
		more := ""
		if n := out.Count - len(out.Conflicts); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		w := run.LaneWait{Why: run.LaneConflict, Digest: row.Tree.Digest, Question: "Its changes conflict with those of " +
			"earlier lanes in " + strings.Join(out.Conflicts, ", ") + more + "."}
		ev := run.LaneWaiting{Index: row.Index, Name: row.Name, LaneWait: w}
		return e.j.emitIn(ctx, row.Key, run.KindLaneWaiting, e.round.Stage, ev)
	}
	ev := run.LaneMerged{Index: row.Index, Name: row.Name, Tree: in.Tree.Tree, Commit: in.Tree.Commit}
	if c := out.Changes; c != nil {
		ev.Tree, ev.Commit, ev.Changed, ev.Files, ev.List = c.Tree, c.Commit, c.Changed, c.Files, c.List
	}
	if err := e.j.emitIn(ctx, row.Key, run.KindLaneMerged, e.round.Stage, ev); err != nil {
		return err
	}
	return e.journalRecovered(ctx, "", out.Recovered, 0)
}

// idle does what is left when no lane can work: it pauses for the budget, or asks about the first lane that waits.
func (e *engine) idle(ctx workflow.Context) error {
	for _, l := range e.lanes {
		if l.lane.short {
			return e.pauseOverBudget(ctx, l.lane.need)
		}
	}
	if e.budgetSpent(ctx) {
		return e.pauseOverBudget(ctx, nil)
	}
	for _, l := range e.j.state.Lanes.Active {
		if l.Waiting == nil {
			continue
		}
		ask := run.QuestionRequested{
			Kind: run.QuestionGate, Question: laneQuestion(l), Phase: e.round.Stage, Round: l.Index + 1,
			Trigger: run.TriggerCheckFailed, Digest: l.Waiting.Digest, Deadlines: e.deadlines(ctx, nil),
		}
		if l.Waiting.Digest != "" && l.Waiting.Why == run.LaneCheck {
			ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "output", Digest: l.Waiting.Digest})
		}
		return e.askQuestion(ctx, ask, routes{})
	}
	return fmt.Errorf("stage %s: no lane can work, and none waits (%s)", e.round.Stage, e.j.state.Lanes.Text())
}

// laneQuestion asks about a lane that waits, with what the answers do.
func laneQuestion(l run.Lane) string {
	text := fmt.Sprintf("Lane %d, %s: %s", l.Index+1, l.Name, l.Waiting.Question)
	switch l.Waiting.Why {
	case run.LaneConflict:
		return text + " retry does the work again on top of theirs; continue_with_waiver leaves the lane out."
	case run.LaneFailed:
		return text + " retry repeats the step; continue_with_waiver leaves the lane out."
	}
	return text + " retry repeats the work; continue_with_waiver accepts it as it is."
}

// applyLaneDecision continues the lane that the last decision is about.
func (e *engine) applyLaneDecision(ctx workflow.Context) error {
	d := e.j.state.Decided
	if d == nil || d.Kind != run.QuestionGate || d.Phase != e.round.Stage || !e.active() {
		return nil
	}
	for _, l := range e.j.state.Lanes.Active {
		if l.Waiting == nil || d.Round != l.Index+1 {
			continue
		}
		if d.Action == run.ActionContinueWithWaiver && l.Waiting.Why != run.LaneCheck {
			ev := run.LaneEnded{Index: l.Index, Name: l.Name, Outcome: run.LaneOutcomeFailed, Reason: l.Waiting.Question}
			return e.j.emitIn(ctx, l.Key, run.KindLaneEnded, e.round.Stage, ev)
		}
		ev := run.LaneContinued{Index: l.Index, Name: l.Name, Action: d.Action, Step: l.Step}
		switch {
		case d.Action == run.ActionContinueWithWaiver:
			ev.Step = min(l.Step+1, len(e.round.Steps))
		case l.Waiting.Why == run.LaneConflict:
			ev.Step, ev.Redo, ev.Tree = 0, true, e.j.state.Tree
		case l.Step >= len(e.round.Steps): // its verdict does not approve the work
			ev.Step, ev.Redo = 0, true
		default:
			ev.Redo = true
		}
		return e.j.emitIn(ctx, l.Key, run.KindLaneContinued, e.round.Stage, ev)
	}
	return nil
}

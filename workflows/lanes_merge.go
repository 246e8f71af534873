package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// startMerge merges the next lane in the order of the list, if it has finished, beside the work of the others. While an
// earlier lane works or waits, it moves rows of later ones to the stored list, and back when their turn comes.
func (e *engine) startMerge(ctx workflow.Context) {
	l := e.j.state.Lanes
	if e.merging || !e.mayStep(ctx) {
		return
	}
	var name string
	var step func(workflow.Context) error
	switch {
	case len(l.Finished) > 0 && l.Finished[0].Index == l.Merged && e.workspace() != nil:
		name, step = "merge "+l.Finished[0].Name, e.merge
	case l.NextStored():
		name, step = "read finished lanes", e.loadFinished
	case len(l.Finished) >= run.MaxFinishedLanes:
		name, step = "store finished lanes", e.storeFinished
	default:
		return
	}
	e.merging = true
	workflow.GoNamed(ctx, name, func(ctx workflow.Context) {
		e.mergeErr = step(ctx)
		e.merging = false
		e.laneSteps++
	})
}

// storeFinished moves the rows of finished lanes to the stored list, except those that are merged next.
func (e *engine) storeFinished(ctx workflow.Context) error {
	rows := e.j.state.Lanes.Finished[run.NextFinished:]
	res, err := e.storedLanes(ctx, rows)
	if err != nil {
		return err
	}
	ev := run.LanesStored{Digest: res.List}
	for _, r := range rows {
		ev.Lanes = append(ev.Lanes, r.Index)
	}
	return e.j.emit(ctx, run.KindLanesStored, e.round.Stage, ev)
}

// loadFinished takes the rows of the lanes that are merged next from the stored list.
func (e *engine) loadFinished(ctx workflow.Context) error {
	res, err := e.storedLanes(ctx, nil)
	if err != nil {
		return err
	}
	return e.j.emit(ctx, run.KindLanesLoaded, e.round.Stage, run.LanesLoaded{Rows: res.Rows})
}

func (e *engine) storedLanes(ctx workflow.Context, rows []run.FinishedLane) (contract.StoreLanesResult, error) {
	l := e.j.state.Lanes
	in := contract.StoreLanesInput{RunID: e.in.Target.RunID, Store: e.in.Target.Store, PlanUse: e.planUse(),
		List: l.Rows, Next: l.Merged, Rows: rows}
	var res contract.StoreLanesResult
	if err := e.readStore(ctx, contract.StoreLanes, in, &res); err != nil {
		return res, fmt.Errorf("read the finished lanes of %s: %w", e.round.Stage, err)
	}
	return res, nil
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
	if limited, err := e.suspendLanes(ctx); limited || err != nil {
		return err
	}
	if q, open := e.j.state.Open(run.QuestionGate); open {
		if err := e.awaitResumed(ctx); err != nil {
			return err
		}
		ev := run.QuestionAwaited{ID: q.ID}
		if err := e.j.emit(ctx, run.KindQuestionAwaited, e.round.Stage, ev); err != nil {
			return err
		}
		return e.awaitAnswer(ctx)
	}
	if l, waits := e.firstWaiting(); waits {
		return e.askQuestion(ctx, e.askAbout(ctx, l), routes{})
	}
	return fmt.Errorf("stage %s: no lane can work, and none waits (%s)", e.round.Stage, e.j.state.Lanes.Text())
}

// firstWaiting is the first lane in the order of the list that waits for an operator.
func (e *engine) firstWaiting() (run.Lane, bool) {
	for _, l := range e.j.state.Lanes.Active {
		if l.Waiting != nil {
			return l, true
		}
	}
	return run.Lane{}, false
}

// askBeside asks about a lane that waits, while others work. The status stays that of a run at work.
func (e *engine) askBeside(ctx workflow.Context) error {
	l, waits := e.firstWaiting()
	if _, open := e.j.state.Open(run.QuestionGate); open || !waits || !e.mayStep(ctx) || e.j.state.Status != run.Running {
		return nil
	}
	ask := e.askAbout(ctx, l)
	ask.Beside = true
	if _, err := e.requestAnswer(ctx, ask); err != nil {
		return err
	}
	e.reminded, e.control.unflushed = "", true
	e.showDetails(ctx)
	return nil
}

// askAbout returns the question about a lane that waits.
func (e *engine) askAbout(ctx workflow.Context, l run.Lane) run.QuestionRequested {
	ask := run.QuestionRequested{
		Kind: run.QuestionGate, Question: laneQuestion(l), Phase: e.round.Stage, Round: l.Index + 1,
		Trigger: run.TriggerCheckFailed, Digest: l.Waiting.Digest, Deadlines: e.deadlines(ctx, nil),
	}
	if l.Waiting.Digest != "" && l.Waiting.Why == run.LaneCheck {
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "output", Digest: l.Waiting.Digest})
	}
	return ask
}

// laneQuestion asks about a lane that waits, with what the answers do.
func laneQuestion(l run.Lane) string {
	text := fmt.Sprintf("Lane %d, %s: %s", l.Index+1, l.Name, l.Waiting.Question)
	if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "?") {
		text += "."
	}
	switch l.Waiting.Why {
	case run.LaneConflict:
		return text + " retry does the work again on top of theirs; continue_with_waiver leaves the lane out."
	case run.LaneFailed:
		return text + " retry repeats the step; continue_with_waiver leaves the lane out."
	}
	return text + " retry repeats the work; continue_with_waiver accepts it as it is."
}

// decidedLane returns the lane that waits and that the last decision is about.
func (e *engine) decidedLane() (run.Lane, bool) {
	d := e.j.state.Decided
	if d == nil || d.Kind != run.QuestionGate || d.Phase != e.round.Stage || !e.active() {
		return run.Lane{}, false
	}
	for _, l := range e.j.state.Lanes.Active {
		if l.Waiting != nil && d.Round == l.Index+1 {
			return l, true
		}
	}
	return run.Lane{}, false
}

// applyLaneDecision continues the lane that the last decision is about.
func (e *engine) applyLaneDecision(ctx workflow.Context) error {
	l, decided := e.decidedLane()
	if !decided {
		return nil
	}
	d := e.j.state.Decided
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

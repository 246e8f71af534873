package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// A lane is an engine that shares the execution of its run. Its journal writes to that of the run, and its state is
// that of the run with its own place, tree, replies and values ([run.State.InLane]). So steps, attempts and budgets of
// lanes are the same code as those of a run.

// lane is the work of an engine on one item.
type lane struct {
	key     string
	index   int
	name    string
	slot    int // of its folder
	item    contract.ItemUse
	at      int // number of lane steps that used or returned budget, when it ended
	running bool
	over    bool      // it has ended or waits for an operator
	short   bool      // the budget does not cover its next call
	need    *run.Need // of that call; nil: a budget is spent
	limited bool      // all calls of its step wait for a limit
	err     error     // that ends the run
}

// inLane adds the item to a text about a step.
func (e *engine) inLane(text string) string {
	if e.lane == nil {
		return text
	}
	return text + " — " + e.lane.name
}

// itemName is the name of the lane's item; empty: the engine is that of the run.
func (e *engine) itemName() string {
	if e.lane == nil {
		return ""
	}
	return e.lane.name
}

// runLanes works through the list of a stage until all lanes are merged, or until the run is to pause, ask or continue
// in the next execution. What it does next depends on the state only.
func (e *engine) runLanes(ctx workflow.Context, at run.Place) error {
	if e.j.state.Lanes == nil {
		if err := e.expand(ctx, at); err != nil || e.j.state.Lanes == nil {
			return err
		}
	}
	defer e.dropLanes()
	for e.mayStep(ctx) && !e.historyFull(ctx) {
		if err := e.applyLaneDecision(ctx); err != nil {
			return e.stopLanes(ctx, err)
		}
		e.startMerge(ctx)
		if l := e.j.state.Lanes; l.Merged >= l.Count && e.mayStep(ctx) {
			return e.leavePhase(ctx, at)
		}
		if err := e.startLanes(ctx); err != nil {
			return e.stopLanes(ctx, err)
		}
		if e.working() == 0 && !e.merging && e.mayStep(ctx) {
			return e.idle(ctx)
		}
		if err := e.askBeside(ctx); err != nil {
			return e.stopLanes(ctx, err)
		}
		if err := e.awaitLanes(ctx); err != nil {
			return e.stopLanes(ctx, err)
		}
	}
	if e.j.state.Status.Settled() {
		e.cancelCalls() // the run was halted: nothing waits for their answers
	}
	if e.mayStep(ctx) {
		e.handingOver = true // a merge ends first: no two may change the checkout at the same time
		if err := workflow.Await(ctx, func() bool { return !e.merging }); err != nil || e.mergeErr != nil {
			return e.stopLanes(ctx, cmp.Or(err, e.mergeErr))
		}
		return errContinueAsNew // without waiting for calls: the next execution joins them
	}
	return e.stopLanes(ctx, nil)
}

// awaitLanes waits until there is something to do: a lane or a merge has ended a step, a question is decided or due, or
// a limit has passed.
func (e *engine) awaitLanes(ctx workflow.Context) error {
	e.writeEnds()
	e.showDetails(ctx)
	seen := e.laneSteps
	changed := func() bool {
		_, decided := e.decidedLane()
		return e.laneSteps != seen || decided || !e.mayStep(ctx) || e.historyFull(ctx)
	}
	q, ask := e.j.state.Open(run.QuestionGate)
	var remind time.Time
	expired := false
	if ask {
		remind, expired = nextDue(q, e.besideSince(q))
	}
	due := earlier(remind, e.nextLimit())
	if due.IsZero() {
		return workflow.Await(ctx, changed)
	}
	summary := "until " + run.Time(due) + ": the limit of a lane"
	if due.Equal(remind) {
		summary = "until the reminder for " + q.ID
	}
	opts := workflow.AwaitOptions{
		Timeout:      max(due.Sub(workflow.Now(ctx)), time.Millisecond),
		TimerOptions: workflow.TimerOptions{Summary: summary},
	}
	if ok, err := workflow.AwaitWithOptions(ctx, opts, changed); err != nil || ok || !due.Equal(remind) {
		return err
	}
	e.reminded = run.Time(workflow.Now(ctx))
	return e.remindOrExpire(ctx, q, expired)
}

// writeEnds writes the ends of lanes to the directory, once, unless a lane begins after them: its call writes them too.
// Otherwise nothing may be written for as long as the other lanes, or a merge, take. The results of merges are written
// with what follows.
func (e *engine) writeEnds() {
	end := int64(0)
	for _, ev := range e.j.pending {
		if ev.Kind == run.KindLaneEnded || ev.Kind == run.KindLaneWaiting {
			end = ev.Seq
		} else if ev.Kind == run.KindLaneStarted {
			end = 0
		}
	}
	if end > e.endsWritten {
		e.endsWritten, e.control.unflushed = end, true
	}
}

// besideSince is when a question was asked or last reminded of.
func (e *engine) besideSince(q run.Question) time.Time {
	at, err := time.Parse(run.TimeFormat, max(q.RequestedAt, e.reminded))
	if err != nil {
		return time.Time{}
	}
	return at
}

// earlier returns the earlier of two times; the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// mayStep reports whether another step of a lane may begin.
func (e *engine) mayStep(ctx workflow.Context) bool {
	c := e.control
	failed := func(l *engine) bool { return l.lane.err != nil }
	return !e.handingOver && e.mergeErr == nil && !c.Pause && c.err == nil && c.Revert == nil && e.active() &&
		!e.j.newer && ctx.Err() == nil && !slices.ContainsFunc(e.lanes, failed)
}

// working counts the lanes that work.
func (e *engine) working() (n int) {
	for _, l := range e.lanes {
		if l.lane.running {
			n++
		}
	}
	return n
}

// stopLanes waits until each lane has ended its step. It returns err, or the first error of a lane.
func (e *engine) stopLanes(ctx workflow.Context, err error) error {
	if err != nil {
		e.handingOver = true
	}
	waits, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	ended := func() bool { return e.working() == 0 && !e.merging }
	if waited := workflow.Await(waits, ended); waited != nil && err == nil {
		err = waited
	}
	if err == nil {
		err = e.mergeErr
	}
	for _, l := range e.lanes {
		if err == nil {
			err = l.lane.err
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// dropLanes forgets the lanes, unless their calls may still settle in this execution.
func (e *engine) dropLanes() {
	if e.handingOver {
		return
	}
	for _, l := range e.lanes {
		e.j.drop(l.j)
	}
	e.lanes = nil
}

// expand makes the list of a stage.
func (e *engine) expand(ctx workflow.Context, at run.Place) error {
	list := e.round.Lanes
	in := contract.ExpandInput{Stage: at.Stage}
	if list.Source == pipeline.ItemsOfGlob {
		in.Tree = e.j.state.Tree
		if w := e.in.Start.Workspace; w != nil {
			in.Submodules = w.Submodules
		}
	}
	for _, r := range e.j.state.Replies {
		if list.From != "" && r.Step == list.From {
			in.Reply = &r.Reply
		}
	}
	res, err := e.readList(ctx, in)
	if isType(err, contract.ErrBadInput) {
		return e.pause(ctx, run.PassFailed, errorMessage(err), "")
	}
	if err != nil {
		return err
	}
	ev := run.StageExpanded{Stage: e.round.Stage, Count: res.Count, Digest: res.List}
	if err := e.j.emit(ctx, run.KindStageExpanded, e.round.Stage, ev); err != nil {
		return err
	}
	return e.j.flush(ctx)
}

// readList makes a list, or reads a part of it.
func (e *engine) readList(ctx workflow.Context, in contract.ExpandInput) (contract.ExpandResult, error) {
	var res contract.ExpandResult
	in.RunID, in.Store, in.PlanUse = e.in.Target.RunID, e.in.Target.Store, e.planUse()
	if err := e.readStore(ctx, contract.ExpandLanes, in, &res); err != nil {
		return res, fmt.Errorf("expand stage %s: %w", e.round.Stage, err)
	}
	e.items, e.itemsFrom = res.Items, in.From
	return res, nil
}

// item returns an item of the list.
func (e *engine) item(ctx workflow.Context, index int) (contract.LaneItem, error) {
	if i := index - e.itemsFrom; i >= 0 && i < len(e.items) {
		return e.items[i], nil
	}
	if _, err := e.readList(ctx, contract.ExpandInput{
		Stage: e.j.state.Lanes.Stage, List: e.j.state.Lanes.Digest, From: index,
	}); err != nil {
		return contract.LaneItem{}, err
	}
	if len(e.items) == 0 {
		return contract.LaneItem{}, fmt.Errorf("read item %d of the list of %s: there is none", index+1, e.round.Stage)
	}
	return e.items[0], nil
}

// startLanes continues the active lanes, and starts others as far as the definition, the budget and the bounds of the
// state allow it.
func (e *engine) startLanes(ctx workflow.Context) error {
	for _, l := range e.j.state.Lanes.Active {
		if l.Waiting == nil && e.working() < e.atOnce() {
			e.startLane(ctx, l)
		}
	}
	short := func(l *engine) bool { return l.lane.short }
	for {
		l := e.j.state.Lanes
		if e.working() >= e.atOnce() || l.Begun >= l.Count || l.Waiting() >= run.MaxWaitingLanes ||
			len(l.Finished) >= run.MaxFinishedLanes || slices.ContainsFunc(e.lanes, short) || e.budgetSpent(ctx) {
			return nil
		}
		item, err := e.item(ctx, l.Begun)
		if err != nil {
			return err
		}
		if !e.mayStep(ctx) {
			return nil
		}
		ev := run.LaneStarted{Index: l.Begun, Name: item.Name}
		if err := e.j.emitIn(ctx, item.Key, run.KindLaneStarted, e.round.Stage, ev); err != nil {
			return err
		}
		started, ok := e.j.state.Lane(item.Key)
		if !ok {
			return fmt.Errorf("start lane %s of %s: the state has no space for it", item.Key, e.round.Stage)
		}
		e.startLane(ctx, started)
	}
}

func (e *engine) atOnce() int { return min(max(1, e.round.Lanes.AtOnce), run.MaxActiveLanes) }

// startLane works on an active lane in a coroutine, unless one does. A lane that the budget did not cover begins again
// after another one has ended a step.
func (e *engine) startLane(ctx workflow.Context, l run.Lane) {
	for _, other := range e.lanes {
		if other.lane.key == l.Key && (other.lane.running || other.lane.short && other.lane.at == e.paidSteps ||
			other.lane.limited && e.limitedLane(ctx, l.Key)) {
			return
		}
	}
	e.lanes = slices.DeleteFunc(slices.Clone(e.lanes), func(other *engine) bool {
		if other.lane.key == l.Key {
			e.j.drop(other.j)
		}
		return other.lane.key == l.Key
	})
	le := &engine{execution: e.execution, round: e.round, readAt: e.readAt, readFrom: e.readFrom}
	le.lane = &lane{
		key: l.Key, index: l.Index, name: l.Name, slot: l.Slot, running: true,
		item: contract.ItemUse{List: e.j.state.Lanes.Digest, Index: l.Index},
	}
	le.j = e.j.view(le, l.Key)
	e.lanes = append(e.lanes, le)
	workflow.GoNamed(ctx, "lane "+l.Name, func(ctx workflow.Context) {
		le.lane.err = le.work(ctx)
		le.lane.running = false
		e.laneSteps++
		if !le.lane.short { // else two lanes that are short would start each other without end
			e.paidSteps++
		}
		le.lane.at = e.paidSteps
	})
}

// work does the steps of a lane.
func (e *engine) work(ctx workflow.Context) error {
	for e.mayStep(ctx) {
		at := e.j.state.Next
		if err := e.readRound(ctx, at); err != nil {
			return err
		}
		if at.Step >= len(e.round.Steps) {
			return e.finishLane(ctx)
		}
		if e.budgetSpent(ctx) {
			e.lane.short = true
			return nil
		}
		if err := e.runPasses(ctx, at, e.round.Steps[at.Step]); err != nil {
			return err
		}
		e.steps++ // only what has ended: calls may be joined in many executions
		if e.lane.over || e.lane.short || e.lane.limited {
			return nil
		}
		e.laneSteps++
		e.paidSteps++
	}
	return nil
}

// settleInLane decides what follows the results of a step of a lane.
func (e *engine) settleInLane(ctx workflow.Context, all []*pass, open *pass, gated bool) error {
	for _, p := range all {
		if p.result != nil {
			p.forgetLimit()
		}
	}
	switch {
	case open != nil && open.stoppedAtBudget():
		e.lane.short, e.lane.need = true, &run.Need{Role: open.role.Name, USD: open.share, Source: run.NeedReached}
		return nil
	case open != nil && open.cannotRun():
		return e.pauseForFailure(ctx, open)
	case open != nil && open.failure != nil:
		if e.control.Pause || !e.active() {
			return nil
		}
		return e.failLane(ctx, run.LaneWait{Why: run.LaneFailed, Question: open.detail})
	case open != nil && slices.ContainsFunc(all, (*pass).waits):
		e.keepLimits(all)
		return nil
	case open != nil || !gated:
		return nil
	}
	w := run.LaneWait{Why: run.LaneCheck, Question: gateQuestion(all[0])}
	if r := all[0].result.Reply; r != nil {
		w.Digest = r.Digest
	}
	return e.failLane(ctx, w)
}

// finishLane ends a lane whose steps are complete. Work that its roles do not approve is not merged without a question.
func (e *engine) finishLane(ctx workflow.Context) error {
	s := e.j.state
	if v := s.Judgement(); v.Approved != nil && !*v.Approved && !e.waived() {
		w := run.LaneWait{Why: run.LaneCheck, Question: notApproved(v) + "."}
		if s.Judged != nil {
			w.Digest = s.Judged.Reply
		}
		return e.failLane(ctx, w)
	}
	return e.endLane(ctx, run.LaneOutcomeDone, "")
}

// waived reports whether an operator accepted the work of the lane as it is.
func (e *engine) waived() bool {
	l, _ := e.j.state.Lane(e.lane.key)
	return l.Waived
}

func (e *engine) endLane(ctx workflow.Context, outcome, why string) error {
	e.lane.over = true
	ev := run.LaneEnded{Index: e.lane.index, Name: e.lane.name, Outcome: outcome, Reason: why}
	if l, ok := e.j.state.Lane(e.lane.key); ok && outcome == run.LaneOutcomeDone {
		ev.Tree = l.Tree
	}
	return e.j.emit(ctx, run.KindLaneEnded, e.round.Stage, ev)
}

// maxLaneQuestion is the maximum length of a text in a cursor.
const maxLaneQuestion = 300

// failLane leaves a lane out, or makes it wait for an operator.
func (e *engine) failLane(ctx workflow.Context, w run.LaneWait) error {
	if e.round.Lanes.Continues() {
		return e.endLane(ctx, run.LaneOutcomeFailed, run.Cut(w.Question, maxLaneQuestion))
	}
	e.lane.over = true
	w.Question = run.Cut(w.Question, maxLaneQuestion)
	ev := run.LaneWaiting{Index: e.lane.index, Name: e.lane.name, LaneWait: w}
	return e.j.emit(ctx, run.KindLaneWaiting, e.round.Stage, ev)
}

// joins reports whether the call of a pass runs already: an earlier execution started it. The pass continues with its
// attempt and id.
func (p *pass) joins() bool {
	if p.e.lane == nil {
		return false
	}
	for _, f := range p.e.j.state.InFlight {
		if f.Lane == p.e.lane.key && f.Step == p.step.Key && f.Member == p.member && f.Call == p.nextCallID() {
			p.attempt, p.callID = f.Attempt, f.Call
			return true
		}
	}
	return false
}

// dropCalls forgets the calls of passes.
func (e *engine) dropCalls(all []*pass) {
	e.calls = slices.DeleteFunc(slices.Clone(e.calls), func(c runningCall) bool { return slices.Contains(all, c.pass) })
}

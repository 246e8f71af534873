package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// A lane is the run of the steps of a stage for one item of a list. It is the same workflow as any run, begins with the
// tree and the replies of its run, and neither delivers nor syncs a checkout. Its run starts lanes as far as the
// definition, the budget and the bounds of the state allow it, asks about those that need an operator, and merges in the
// order of the list what they left.

// runLanes does the next thing about the lanes of a stage. What it does depends on the state and on the records of lanes.
func (e *engine) runLanes(ctx workflow.Context, at run.Place) error {
	if e.j.state.Lanes == nil {
		return e.listLanes(ctx, at)
	}
	if err := e.readLanes(ctx, false); err != nil {
		return err
	}
	if did, err := e.applyLaneDecision(ctx); did || err != nil {
		return err
	}
	l := e.j.state.Lanes
	if next, ended := l.Next(); ended {
		return e.mergeLane(ctx, next)
	}
	if l.Merged >= l.Count {
		return e.leavePhase(ctx, at)
	}
	if did, err := e.startLanes(ctx); did || err != nil {
		return err
	}
	if err := e.askAboutLane(ctx); err != nil {
		return err
	}
	return e.awaitLanes(ctx)
}

// laneRunID is the run id of a lane.
func (e *engine) laneRunID(l run.Lane) string {
	return l.ChildRunID(e.in.Target.RunID, e.j.state.Lanes.Stage)
}

// laneStage is the name of the stage with the lanes.
func (e *engine) laneStage() string { return e.in.Start.Stages[e.j.state.Lanes.Stage].Name }

// openLanes are those that work or wait.
func (e *engine) openLanes() []run.Lane {
	if e.j.state.Lanes == nil {
		return nil
	}
	return e.j.state.Lanes.Active
}

func (e *engine) openLaneIDs() (ids []string) {
	for _, l := range e.openLanes() {
		ids = append(ids, e.laneRunID(l))
	}
	return ids
}

// listLanes makes the list of a stage.
func (e *engine) listLanes(ctx workflow.Context, at run.Place) error {
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
	ev := run.ChildrenListed{Stage: e.round.Stage, Count: res.Count, Digest: res.List}
	if err := e.j.emit(ctx, run.KindChildrenListed, e.round.Stage, ev); err != nil {
		return err
	}
	return e.j.flush(ctx)
}

// readList makes a list, or reads a part of it.
func (e *engine) readList(ctx workflow.Context, in contract.ExpandInput) (contract.ExpandResult, error) {
	var res contract.ExpandResult
	in.RunID, in.Store, in.PlanUse = e.in.Target.RunID, e.in.Target.Store, e.planUse()
	if err := e.readStore(ctx, contract.ExpandLanes, in, &res); err != nil {
		return res, fmt.Errorf("list the items of stage %s: %w", e.round.Stage, err)
	}
	e.items, e.itemsFrom, e.itemsOf = res.Items, in.From, res.List
	return res, nil
}

// item returns an item of the list.
func (e *engine) item(ctx workflow.Context, index int) (contract.LaneItem, error) {
	if i := index - e.itemsFrom; e.itemsOf == e.j.state.Lanes.Digest && i >= 0 && i < len(e.items) {
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

// readLanes reads the record of each lane that has changed, and journals how it ended. stopping: its run ends or goes
// back, and the lane begins again with it.
func (e *engine) readLanes(ctx workflow.Context, stopping bool) error {
	for _, l := range e.openLanes() {
		c, did, err := e.readChild(ctx, e.laneRunID(l), l.Dir(e.laneStage()), "lane "+l.Name)
		if err != nil {
			return err
		}
		if did {
			if err := e.laneRead(ctx, l, c, stopping); err != nil {
				return err
			}
		}
	}
	return nil
}

// laneRead journals what the record of a lane shows.
func (e *engine) laneRead(ctx workflow.Context, l run.Lane, c *child, stopping bool) error {
	if c.found.Found == run.NotFound && c.found.Closed { // it was journaled, and not started
		return e.startLane(ctx, l.LanePlace)
	}
	outcome := c.outcome(true)
	if !outcome.Rule().Ends {
		return e.closeLaneQuestion(ctx, l, e.laneNeeds(l))
	}
	e.steps++
	ev := run.ChildEnd{RunID: e.laneRunID(l), LanePlace: l.LanePlace, Outcome: run.ChildFailed, Status: c.found.Status,
		Reason: run.Cut(cmp.Or(c.found.Reason, "its run is "+string(outcome)), maxLaneText)}
	if c.found.Cost != nil {
		ev.Cost = *c.found.Cost
	}
	switch {
	case outcome == run.ProjectDone:
		ev.Outcome, ev.Reason = run.ChildDone, ""
		if base := cmp.Or(l.Base, e.j.state.Lanes.Base); base != nil && c.found.Tree != nil && *base != *c.found.Tree {
			ev.Tree = c.found.Tree
		}
	case stopping:
		ev.Outcome, ev.Reason = run.ChildStopped, ""
	}
	if err := e.j.emit(ctx, run.KindChildEnded, e.laneStage(), ev); err != nil {
		return err
	}
	need := ""
	if ev.Outcome == run.ChildFailed {
		need = run.LaneFailed
	}
	if err := e.closeLaneQuestion(ctx, l, need); err != nil {
		return err
	}
	if ev.Outcome != run.ChildFailed || !e.round.Lanes.Continues() {
		return e.warnBudget(ctx)
	}
	return e.skipLane(ctx, run.Lane{LanePlace: l.LanePlace, Reason: ev.Reason}, run.ChildCost{})
}

// maxLaneText is the maximum length of a text about a lane in an event.
const maxLaneText = 300

func (e *engine) skipLane(ctx workflow.Context, l run.Lane, cost run.ChildCost) error {
	ev := run.ChildSkip{Index: l.Index, Key: l.Key, Name: l.Name, Reason: l.Reason, Cost: cost}
	return e.j.emit(ctx, run.KindChildSkipped, e.laneStage(), ev)
}

// What a lane needs of its run or of an operator, besides the reasons of questions; empty: it works.
const (
	laneShort = "budget" // its share of the budget does not cover its next call
	laneRests = "rests"  // an operator has paused it
)

// laneNeeds returns what a lane needs.
func (e *engine) laneNeeds(l run.Lane) string {
	if l.Outcome == run.ChildConflict {
		return run.LaneConflict
	}
	if l.Outcome != "" {
		return run.LaneFailed
	}
	switch f := e.childOf(e.laneRunID(l)).found; {
	case f.Status == run.Paused && f.Reason == run.BudgetThreshold:
		return laneShort
	case f.Status == run.Paused && (f.Reason == run.UserRequested || f.Reason == run.UserReview):
		return laneRests
	case f.Status == run.Paused:
		return run.LaneFailed
	case f.Question != nil && f.Status.Class() == run.OperatorPause:
		return run.LaneCheck
	}
	return ""
}

// working counts the lanes that work or wait for a limit.
func (e *engine) working() (n int) {
	for _, l := range e.openLanes() {
		if e.laneNeeds(l) == "" {
			n++
		}
	}
	return n
}

// startLanes starts a lane, or raises the budget of one, as far as the definition, the budget and the bounds of the state
// allow it. It pauses the run if its budget allows none.
func (e *engine) startLanes(ctx workflow.Context) (did bool, err error) {
	if !e.active() {
		return false, nil
	}
	l, free := e.j.state.Lanes, e.atOnce()-e.working()
	for _, a := range l.Active {
		if free > 0 && e.laneNeeds(a) == laneShort {
			if e.budgetSpent(ctx) {
				return e.lanesShort(ctx, nil)
			}
			did, short, err := e.raiseLane(ctx, a, free)
			if did || err != nil || !short {
				return did, err
			}
			return e.lanesShort(ctx, e.childOf(e.laneRunID(a)).found.Need)
		}
	}
	if free <= 0 || l.Begun >= l.Count && len(l.Again) == 0 || len(l.Active)+len(l.Asked)-e.working() >= run.MaxAskedLanes {
		return false, nil
	}
	if e.budgetSpent(ctx) {
		return e.lanesShort(ctx, nil)
	}
	need := e.j.state.Needs(firstRole(e.round))
	share, covered := e.share(need, free)
	if b := e.j.state.Budget; !covered || b.Tokens > 0 && share.Tokens <= 0 || b.Calls > 0 && share.Calls <= 0 { // 0: no limit
		return e.lanesShort(ctx, &need)
	}
	var item contract.LaneItem
	if len(l.Again) == 0 {
		if item, err = e.item(ctx, l.Begun); err != nil {
			return false, err
		}
	}
	place := e.j.state.NextLane(item.Key, item.Name)
	if share != (run.Budget{}) {
		place.Budget = &share
	}
	return true, e.beginLane(ctx, place)
}

func firstRole(r contract.Round) string {
	for _, s := range r.Steps {
		if s.Kind != pipeline.KindRun && len(s.Roles) > 0 {
			return s.Roles[0].Name
		}
	}
	return ""
}

// lanesShort pauses the run if nothing works whose end may return what is missing.
func (e *engine) lanesShort(ctx workflow.Context, need *run.Need) (bool, error) {
	if e.working() > 0 {
		return false, nil
	}
	return true, e.pauseOverBudget(ctx, need)
}

func (e *engine) atOnce() int { return min(max(1, e.round.Lanes.AtOnce), run.MaxActiveLanes) }

// share returns the part of the rest of the budget for one of several lanes: an equal part, or else what its first call
// needs. covered: the rest suffices. All lanes together keep to the budget; what one does not use is left when it ends.
func (e *engine) share(need run.Need, parts int) (b run.Budget, covered bool) {
	s := e.j.state
	b, left := s.Budget, restOf(s)
	for _, l := range e.openLanes() {
		c := e.laneBudget(l)
		left.usd, left.tokens, left.calls = left.usd-c.CapUSD, left.tokens-c.Tokens, left.calls-c.Calls
	}
	if !left.covers(&need) {
		return b, false
	}
	if b.CapUSD > 0 {
		warn := b.WarnUSD / b.CapUSD
		b.CapUSD = run.Cents(min(left.usd, max(need.USD, left.usd/float64(parts))))
		b.WarnUSD = run.Cents(b.CapUSD * warn)
	}
	if b.Tokens > 0 {
		b.Tokens = min(left.tokens, max(need.Tokens, left.tokens/int64(parts)))
	}
	if b.Calls > 0 {
		b.Calls = min(left.calls, max(1, left.calls/parts))
	}
	return b, b.CapUSD > 0 || s.Budget.CapUSD == 0
}

// laneBudget is the share of a lane: as its record has it, or as it was journaled.
func (e *engine) laneBudget(l run.Lane) run.Budget {
	b := e.childOf(e.laneRunID(l)).budget
	if b == (run.Budget{}) && l.Budget != nil {
		return *l.Budget
	}
	return b
}

// raiseLane raises the budget of a lane, and lets it continue. short: there is nothing more to give.
func (e *engine) raiseLane(ctx workflow.Context, l run.Lane, parts int) (did, short bool, err error) {
	id := e.laneRunID(l)
	c := e.childOf(id)
	need := run.Need{Role: firstRole(e.round)}
	if c.found.Need != nil {
		need = *c.found.Need
	}
	more, covered := e.share(need, parts)
	if !covered {
		return false, true, nil
	}
	was := e.laneBudget(l)
	c.budget = more // with the deadline and the hours of the run
	c.budget.CapUSD, c.budget.Tokens = run.Cents(was.CapUSD+more.CapUSD), was.Tokens+more.Tokens
	c.budget.Calls, c.budget.WarnUSD = was.Calls+more.Calls, run.Cents(was.WarnUSD+more.WarnUSD)
	if c.budget == was || need.OfTokens && more.Tokens <= 0 {
		c.budget = was
		return false, true, nil
	}
	c.found.Status, c.found.Reason = run.Running, "" // until it reports
	e.tell(ctx, id, contract.VerbBudget, contract.Message{USD: c.budget.CapUSD, BudgetLimits: limitsOf(c.budget)})
	e.tell(ctx, id, contract.VerbResume, contract.Message{})
	return true, false, ctx.Err()
}

// beginLane journals the start of a lane, and starts it.
func (e *engine) beginLane(ctx workflow.Context, place run.LanePlace) error {
	ev := run.ChildStart{RunID: place.ChildRunID(e.in.Target.RunID, e.j.state.Lanes.Stage), LanePlace: place}
	if err := e.j.emit(ctx, run.KindChildStarted, e.round.Stage, ev); err != nil {
		return err
	}
	return e.startLane(ctx, place)
}

func (e *engine) startLane(ctx workflow.Context, place run.LanePlace) error {
	in := e.laneInput(ctx, place)
	err := e.startChild(ctx, contract.ChildInput{Queue: workflow.GetInfo(ctx).TaskQueueName, Input: &in,
		Summary: "lane " + place.Name + " of run " + e.in.Target.RunID})
	if err != nil {
		return fmt.Errorf("start lane %s: %w", place.Name, err)
	}
	return nil
}

// laneInput is the input of a lane: that of its run, with its place.
func (e *engine) laneInput(ctx workflow.Context, place run.LanePlace) contract.Input {
	s, in := e.j.state, e.in
	id, stage := place.ChildRunID(in.Target.RunID, s.Lanes.Stage), e.laneStage()
	in.Target.RunID, in.Target.Dir, in.Target.Epoch = id, path.Join(in.Target.Dir, place.Dir(stage)), 0
	in.Claim.RunID, in.Claim.CreatedAt, in.Claim.Projects = id, e.j.now(ctx), nil
	in.Snapshot, in.Reopen, in.Projects = nil, nil, nil
	given := s.Given(s.Lanes.Stage)
	start := in.Start
	start.RunID, start.CreatedAt, start.Epoch, start.State, start.From = id, in.Claim.CreatedAt, 1, &given, nil
	start.Lane = &run.LaneOf{RunID: e.in.Target.RunID, Stage: stage, List: s.Lanes.Digest, Calls: e.callPrefix(),
		Continues: e.round.Lanes.Continues(), LanePlace: place}
	start.Stages, start.Delivers, start.Kind = start.Stages[:s.Lanes.Stage+1], false, ""
	start.Projects, start.MemberOf, start.Parent, start.Replies = nil, nil, nil, nil
	start.Warnings, start.Found, start.Amendments = nil, nil, nil
	start.Receivers = limitReceivers(start.Receivers)
	start.Budget = run.Budget{}
	if place.Budget != nil {
		start.Budget = *place.Budget
	}
	if w := start.Workspace; w != nil {
		own := *w
		own.Tree, own.Commit = *cmp.Or(place.Base, s.Lanes.Base, &w.Tree), s.Commit
		start.Workspace = &own
	}
	in.Start = start
	return in
}

// limitReceivers are notified of limits that lanes meet. Their run asks their questions.
func limitReceivers(all []run.Receiver) (some []run.Receiver) {
	for _, r := range all {
		r.On = slices.DeleteFunc(slices.Clone(r.On), func(on string) bool { return on != "limit" })
		some = append(some, r) // the plan has the others, in the same order
	}
	return some
}

// mergeLane merges the lane that comes next in the order of the list.
func (e *engine) mergeLane(ctx workflow.Context, next run.LaneName) error {
	l := e.j.state.Lanes
	in := contract.MergeInput{Stage: e.round.Stage, StageIndex: l.Stage, List: l.Digest, LaneName: next,
		Given: l.Given}
	in.Target, in.Tree, in.Message = e.in.Target, *e.workspace(), e.round.Title
	var out contract.MergeResult
	summary := fmt.Sprintf("merge lane %d", next.Index+1)
	failed, err := e.tryCheckoutActivity(ctx, summary, contract.MergeLane, &in, &out)
	if err != nil {
		return fmt.Errorf("%s: %w", summary, err)
	}
	if failed != nil { // after the pause it is merged into the tree of then, which an operator may have edited
		return e.pause(ctx, run.PassFailed, summary+": "+errorMessage(failed), "")
	}
	e.steps++
	if out.Count > 0 {
		more := ""
		if n := out.Count - len(out.Conflicts); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		return e.j.emit(ctx, run.KindChildEnded, e.round.Stage, run.ChildEnd{
			RunID: out.RunID, LanePlace: out.Lane, Outcome: run.ChildConflict, Status: run.Done,
			Reason: "Its changes conflict with those of earlier lanes in " + strings.Join(out.Conflicts, ", ") + more + ".",
		})
	}
	ev := run.ChildMerged{Index: out.Lane.Index, Key: out.Lane.Key, Name: out.Lane.Name, Tree: in.Tree.Tree,
		Commit: in.Tree.Commit, Verdict: out.Verdict, Approved: out.Approved}
	if c := out.Changes; c != nil {
		ev.Tree, ev.Commit, ev.Changed, ev.Files, ev.List = c.Tree, c.Commit, c.Changed, c.Files, c.List
	}
	if err := e.j.emit(ctx, run.KindChildMerged, e.round.Stage, ev); err != nil {
		return err
	}
	return e.journalRecovered(ctx, "", out.Recovered, 0)
}

// laneToAsk is the first lane in the order of the list about which an operator is asked, and why.
func (e *engine) laneToAsk() (l run.Lane, why string) {
	all := slices.Concat(e.openLanes(), e.j.state.Lanes.Asked)
	slices.SortStableFunc(all, func(a, b run.Lane) int { return a.Index - b.Index })
	for _, l := range all {
		if why := e.laneNeeds(l); why == run.LaneFailed || why == run.LaneCheck || why == run.LaneConflict {
			return l, why
		}
	}
	return run.Lane{}, ""
}

// askAboutLane asks about a lane that needs an operator. The status stays that of a run at work as long as others work.
func (e *engine) askAboutLane(ctx workflow.Context) error {
	q, open := e.j.state.Open(run.QuestionGate)
	if l, why := e.laneToAsk(); !open && why != "" && e.j.state.Status == run.Running {
		id, err := e.requestAnswer(ctx, e.laneQuestion(ctx, l, why))
		if err != nil {
			return err
		}
		e.reminded = ""
		if q, open = e.j.state.Open(run.QuestionGate); !open {
			return fmt.Errorf("ask about lane %s: the question %s is not open", l.Name, id)
		}
	}
	if !open || e.working() > 0 || e.j.state.Status != run.Running {
		return nil
	}
	return e.j.emit(ctx, run.KindQuestionAwaited, e.round.Stage, run.QuestionAwaited{ID: q.ID})
}

// laneQuestion returns the question about a lane, with what the answers do.
func (e *engine) laneQuestion(ctx workflow.Context, l run.Lane, why string) run.QuestionRequested {
	f := e.childOf(e.laneRunID(l)).found
	ask := run.QuestionRequested{
		Kind: run.QuestionGate, Phase: e.round.Stage, Round: l.Index + 1, Trigger: run.TriggerCheckFailed, Of: why,
		Beside: true, Deadlines: e.deadlines(ctx, nil),
	}
	text, then := l.Reason, " retry does the work again; continue_with_waiver leaves the lane out."
	switch {
	case why == run.LaneConflict:
		then = " retry does the work again on top of theirs; continue_with_waiver leaves the lane out."
	case why == run.LaneCheck:
		text, ask.Digest, ask.Artifacts = f.Question.Text, f.Question.Digest, f.Question.Artifacts
		then = " retry repeats the work; continue_with_waiver accepts it as it is."
	case l.Outcome == "":
		text, then = cmp.Or(f.Detail, f.Reason), " retry repeats the step; continue_with_waiver leaves the lane out."
	}
	if text = run.Cut(text, maxLaneText); !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "?") {
		text += "."
	}
	ask.Question = fmt.Sprintf("Lane %d, %s: %s%s", l.Index+1, l.Name, text, then)
	return ask
}

// openLaneQuestion returns the open question about a lane of the stage.
func (e *engine) openLaneQuestion() (run.Question, bool) {
	q, open := e.j.state.Open(run.QuestionGate)
	return q, open && e.j.state.Lanes != nil && q.Of != ""
}

// closeLaneQuestion closes the question about a lane that no longer needs this answer: an operator has decided at the lane,
// or it needs another one, which is asked for next.
func (e *engine) closeLaneQuestion(ctx workflow.Context, l run.Lane, need string) error {
	q, open := e.openLaneQuestion()
	if !open || q.Round != l.Index+1 || q.Of == need {
		return nil
	}
	m := contract.Message{ID: q.ID, Action: run.ActionRetry, By: "lane " + l.Name}
	if err := e.j.emit(ctx, run.KindGateDecided, q.Phase, e.control.decisionEvent(ctx, q, m)); err != nil {
		return err
	}
	e.applied = q.ID
	return nil
}

// laneDecision returns the decision about a lane that has not been acted on.
func (e *engine) laneDecision() (*run.Decided, bool) {
	d := e.j.state.Decided
	return d, d != nil && d.Kind == run.QuestionGate && d.ID != e.applied && e.j.state.Lanes != nil &&
		d.Phase == e.laneStage() && e.active()
}

// forgetAnswered keeps a new epoch from acting again on the last decision about a lane. One that was not acted on is asked
// for again.
func (e *engine) forgetAnswered() {
	if d := e.j.state.Decided; d != nil {
		e.applied = d.ID
	}
}

// applyLaneDecision executes the last decision about a lane.
func (e *engine) applyLaneDecision(ctx workflow.Context) (did bool, err error) {
	d, made := e.laneDecision()
	if !made {
		return false, nil
	}
	e.applied = d.ID
	for _, l := range slices.Concat(e.openLanes(), e.j.state.Lanes.Asked) {
		if l.Index+1 == d.Round {
			return true, e.continueLane(ctx, l, *d)
		}
	}
	return false, nil
}

func (e *engine) continueLane(ctx workflow.Context, l run.Lane, d run.Decided) error {
	id, why := e.laneRunID(l), e.laneNeeds(l)
	c := e.childOf(id)
	switch leave := d.Action == run.ActionContinueWithWaiver; {
	case l.Outcome != "" && leave:
		return e.skipLane(ctx, l, run.ChildCost{})
	case l.Outcome != "":
		return e.beginLane(ctx, e.j.state.LaneAgain(l))
	case why == run.LaneCheck:
		e.tell(ctx, id, contract.VerbDecide, contract.Message{Action: d.Action, Feedback: d.Feedback, Note: d.Note, ID: c.found.Question.ID})
		c.found.Status, c.found.Question = run.Running, nil // until it reports
	case why == run.LaneFailed && leave:
		l.Reason = run.Cut(cmp.Or(c.found.Detail, c.found.Reason), maxLaneText)
		cost := run.ChildCost{}
		if c.found.Cost != nil {
			cost = *c.found.Cost
		}
		if err := e.skipLane(ctx, l, cost); err != nil {
			return err
		}
		e.cancelChildren(ctx, []string{id})
	case why == run.LaneFailed:
		e.tell(ctx, id, contract.VerbResume, contract.Message{Note: d.Note, Force: true, Reason: "retry of its run"})
		c.found.Status = run.Running
	}
	return ctx.Err()
}

// awaitLanes waits until a lane changes, its question is decided or due, or a message asks for something.
func (e *engine) awaitLanes(ctx workflow.Context) error {
	if err := e.j.flush(ctx); err != nil {
		return err
	}
	var remind time.Time
	expired := false
	q, asked := e.openLaneQuestion()
	if asked {
		remind, expired = nextDue(q, e.besideSince(q))
	}
	due, err := e.wait(ctx, wait{name: waitLanes, until: remind, summary: "until the reminder for " + q.ID})
	if now, open := e.openLaneQuestion(); err != nil || !due || !open || now.ID != q.ID { // decided meanwhile
		return err
	}
	e.reminded = run.Time(workflow.Now(ctx))
	return e.remindOrExpire(ctx, q, expired)
}

// besideSince is when a question was asked or last reminded of.
func (e *engine) besideSince(q run.Question) time.Time {
	at, err := time.Parse(run.TimeFormat, max(q.RequestedAt, e.reminded))
	if err != nil {
		return time.Time{}
	}
	return at
}

// tellLanes sends a message to all open lanes: a pause or a resume of their run is theirs.
func (e *engine) tellLanes(ctx workflow.Context, verb string, m contract.Message) {
	for _, id := range e.openLaneIDs() {
		e.tell(ctx, id, verb, m)
		e.childOf(id).changed = true
	}
}

// stopLanes ends the open lanes of a run that ends or goes back, and journals what they have cost.
func (e *engine) stopLanes(ctx workflow.Context) error {
	if len(e.openLanes()) == 0 {
		return nil
	}
	e.cancelChildren(ctx, e.openLaneIDs())
	return e.awaitEnds(ctx, e.openLaneIDs, func(ctx workflow.Context) error {
		if err := e.readRound(ctx, run.Place{Stage: e.j.state.Lanes.Stage, Round: 1}); err != nil {
			return err
		}
		return e.readLanes(ctx, true)
	})
}

// finishLane ends a lane whose steps are complete. Work that its roles do not approve is not merged without a question.
func (e *engine) finishLane(ctx workflow.Context) (*run.RunEnd, error) {
	s := e.j.state
	d, v := s.Decided, s.Judgement()
	waived := d != nil && d.Kind == run.QuestionGate && d.Action == run.ActionContinueWithWaiver
	if v.Approved == nil || *v.Approved || waived {
		return &run.RunEnd{Status: run.Done}, nil
	}
	if err := e.failLane(notApproved(v) + "."); err != nil {
		return nil, err
	}
	ask := run.QuestionRequested{
		Kind: run.QuestionGate, Question: notApproved(v) + ".", Phase: e.in.Start.Lane.Stage, Round: 1,
		Trigger: run.TriggerCheckFailed, Deadlines: e.deadlines(ctx, nil),
	}
	if s.Judged != nil && s.Judged.Reply != "" {
		ask.Digest = s.Judged.Reply
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "output", Digest: ask.Digest})
	}
	first := run.Place{Stage: len(e.in.Start.Stages) - 1, Round: 1}
	return nil, e.askQuestion(ctx, ask, routes{again: &first})
}

// failLane ends a lane that is left out when it fails; nil: it is none.
func (e *engine) failLane(why string) error {
	if l := e.in.Start.Lane; l == nil || !l.Continues {
		return nil
	}
	return errors.New(why)
}

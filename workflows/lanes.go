package workflows

import (
	"cmp"
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

// lanes is the work of a stage on the items of a list.
type lanes struct {
	*execution
	items     []contract.LaneItem // the last part of the list that was read
	itemsFrom int
	itemsOf   string // digest of that list
}

// A lane is the run of the steps of a stage for one item of a list. It is the same workflow as any run, begins with the
// tree and the replies of its run, and neither delivers nor syncs a checkout. Its run starts lanes as far as the
// definition, the budget and the bounds of the state allow it, asks about those that need an operator, and merges in the
// order of the list what they left.

// run does the next thing about the lanes of a stage. What it does depends on the state and on the records of lanes.
// done: each of them was merged or left out.
func (ls *lanes) run(ctx workflow.Context, at run.Place) (done bool, err error) {
	if ls.state().Lanes == nil {
		return false, ls.list(ctx, at)
	}
	if err := ls.read(ctx, false); err != nil {
		return false, err
	}
	if did, err := ls.applyDecision(ctx); did || err != nil {
		return false, err
	}
	l := ls.state().Lanes
	if next, ended := l.Next(); ended {
		return false, ls.merge(ctx, next)
	}
	if l.Merged >= l.Count {
		return true, nil
	}
	if did, err := ls.startSome(ctx); did || err != nil {
		return false, err
	}
	if err := ls.askAbout(ctx); err != nil {
		return false, err
	}
	return false, ls.await(ctx)
}

// list makes the list of a stage.
func (ls *lanes) list(ctx workflow.Context, at run.Place) error {
	list := ls.round.Lanes
	in := contract.ExpandInput{Stage: at.Stage}
	if list.Source == pipeline.ItemsOfGlob {
		in.Tree = ls.state().Tree
		if w := ls.in.Start.Workspace; w != nil {
			in.Submodules = w.Submodules
		}
	}
	if o, ok := ls.state().Output(list.ID); ok && list.ID != "" {
		if in.Reply = o.Text; list.Source == pipeline.ItemsOfOutput {
			in.Reply = o.Data
		}
	}
	res, err := ls.readList(ctx, in)
	if isType(err, contract.ErrBadInput) {
		ls.pause(ctx, run.PassFailed, errorMessage(err), "")
		return nil
	}
	if err != nil {
		return err
	}
	ev := run.ChildrenListed{Stage: ls.round.Stage, Count: res.Count, Digest: res.List}
	ls.journal.emit(ctx, run.KindChildrenListed, ls.round.Stage, ev)
	return ls.journal.flush(ctx)
}

// readList makes a list, or reads a part of it.
func (ls *lanes) readList(ctx workflow.Context, in contract.ExpandInput) (contract.ExpandResult, error) {
	var res contract.ExpandResult
	in.RunID, in.Store, in.PlanUse = ls.in.Target.RunID, ls.in.Target.Store, ls.planUse()
	if err := ls.host.readStore(ctx, contract.ExpandLanes, in, &res); err != nil {
		return res, fmt.Errorf("list the items of stage %s: %w", ls.round.Stage, err)
	}
	ls.items, ls.itemsFrom, ls.itemsOf = res.Items, in.From, res.List
	return res, nil
}

// item returns an item of the list.
func (ls *lanes) item(ctx workflow.Context, index int) (contract.LaneItem, error) {
	if i := index - ls.itemsFrom; ls.itemsOf == ls.state().Lanes.Digest && i >= 0 && i < len(ls.items) {
		return ls.items[i], nil
	}
	if _, err := ls.readList(ctx, contract.ExpandInput{
		Stage: ls.state().Lanes.Stage, List: ls.state().Lanes.Digest, From: index,
	}); err != nil {
		return contract.LaneItem{}, err
	}
	if len(ls.items) == 0 {
		return contract.LaneItem{}, fmt.Errorf("read item %d of the list of %s: there is none", index+1, ls.round.Stage)
	}
	return ls.items[0], nil
}

// read reads the record of each lane that has changed, and journals how it ended. stopping: its run ends or goes
// back, and the lane begins again with it.
func (ls *lanes) read(ctx workflow.Context, stopping bool) error {
	for _, l := range ls.children.openLanes() {
		c, did, err := ls.children.read(ctx, ls.children.laneRunID(l), l.Dir(ls.children.laneStage()), "lane "+l.Name)
		if err != nil {
			return err
		}
		if did {
			if err := ls.laneRead(ctx, l, c, stopping); err != nil {
				return err
			}
		}
	}
	return nil
}

// laneRead journals what the record of a lane shows.
func (ls *lanes) laneRead(ctx workflow.Context, l run.Lane, c *child, stopping bool) error {
	if c.found.Found == run.NotFound && c.found.Closed { // it was journaled, and not started
		return ls.start(ctx, l.LanePlace)
	}
	outcome := c.outcome(true)
	if !outcome.Rule().Ends {
		ls.closeQuestion(ctx, l, ls.needs(l))
		return nil
	}
	ls.host.stepDone()
	ev := run.ChildEnd{RunID: ls.children.laneRunID(l), LanePlace: l.LanePlace, Outcome: run.ChildFailed, Status: c.found.Status,
		Reason: run.Cut(cmp.Or(c.found.Reason, "its run is "+string(outcome)), maxLaneText)}
	if c.found.Cost != nil {
		ev.Cost = *c.found.Cost
	}
	switch {
	case outcome == run.ProjectDone:
		ev.Outcome, ev.Reason = run.ChildDone, ""
		if base := cmp.Or(l.Base, ls.state().Lanes.Base); base != nil && c.found.Tree != nil && *base != *c.found.Tree {
			ev.Tree = c.found.Tree
		}
	case stopping:
		ev.Outcome, ev.Reason = run.ChildStopped, ""
	}
	ls.journal.emit(ctx, run.KindChildEnded, ls.children.laneStage(), ev)
	need := ""
	if ev.Outcome == run.ChildFailed {
		need = run.LaneFailed
	}
	ls.closeQuestion(ctx, l, need)
	if ev.Outcome != run.ChildFailed || !ls.round.Lanes.Continues() {
		ls.warnBudget(ctx)
		return nil
	}
	ls.skip(ctx, run.Lane{LanePlace: l.LanePlace, Reason: ev.Reason}, run.ChildCost{})
	return nil
}

// maxLaneText is the maximum length of a text about a lane in an event.
const maxLaneText = 300

func (ls *lanes) skip(ctx workflow.Context, l run.Lane, cost run.ChildCost) {
	ev := run.ChildSkip{Index: l.Index, Key: l.Key, Name: l.Name, Reason: l.Reason, Cost: cost}
	ls.journal.emit(ctx, run.KindChildSkipped, ls.children.laneStage(), ev)
}

// What a lane needs of its run or of an operator, besides the reasons of questions; empty: it works.
const (
	laneShort = "budget" // its share of the budget does not cover its next call
	laneRests = "rests"  // an operator has paused it
)

// needs returns what a lane needs.
func (ls *lanes) needs(l run.Lane) string {
	if l.Outcome == run.ChildConflict {
		return run.LaneConflict
	}
	if l.Outcome != "" {
		return run.LaneFailed
	}
	switch f := ls.children.of(ls.children.laneRunID(l)).found; {
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

// asks returns the id of the question that a lane asks.
func (ls *lanes) asks(l run.Lane) string {
	if q := ls.children.of(ls.children.laneRunID(l)).found.Question; q != nil {
		return q.ID
	}
	return ""
}

// working counts the lanes that work or wait for a limit.
func (ls *lanes) working() (n int) {
	for _, l := range ls.children.openLanes() {
		if ls.needs(l) == "" {
			n++
		}
	}
	return n
}

// startSome starts a lane, or raises the budget of one, as far as the definition, the budget and the bounds of the state
// allow it. It pauses the run if its budget allows none.
func (ls *lanes) startSome(ctx workflow.Context) (did bool, err error) {
	if !ls.active() {
		return false, nil
	}
	l, free := ls.state().Lanes, ls.atOnce()-ls.working()
	for _, a := range l.Active {
		if free > 0 && ls.needs(a) == laneShort {
			if ls.budgetSpent(ctx) {
				return ls.short(ctx, nil)
			}
			did, short, err := ls.raise(ctx, a, free)
			if did || err != nil || !short {
				return did, err
			}
			return ls.short(ctx, ls.children.of(ls.children.laneRunID(a)).found.Need)
		}
	}
	if free <= 0 || l.Begun >= l.Count && len(l.Again) == 0 || len(l.Active)+len(l.Asked)-ls.working() >= run.MaxAskedLanes {
		return false, nil
	}
	if ls.budgetSpent(ctx) {
		return ls.short(ctx, nil)
	}
	need := ls.state().Needs(firstRole(ls.round.Round))
	share, covered := ls.share(need, free)
	if b := ls.state().Budget; !covered || b.Tokens > 0 && share.Tokens <= 0 || b.Calls > 0 && share.Calls <= 0 { // 0: no limit
		return ls.short(ctx, &need)
	}
	var item contract.LaneItem
	if len(l.Again) == 0 {
		if item, err = ls.item(ctx, l.Begun); err != nil {
			return false, err
		}
	}
	place := ls.state().NextLane(item.Key, item.Name)
	if share != (run.Budget{}) {
		place.Budget = &share
	}
	return true, ls.begin(ctx, place)
}

func firstRole(r contract.Round) string {
	for _, s := range r.Steps {
		if s.Kind != pipeline.KindRun && len(s.Roles) > 0 {
			return s.Roles[0].Name
		}
	}
	return ""
}

// short pauses the run if nothing works whose end may return what is missing.
func (ls *lanes) short(ctx workflow.Context, need *run.Need) (bool, error) {
	if ls.working() > 0 {
		return false, nil
	}
	ls.pauseOverBudget(ctx, need)
	return true, nil
}

func (ls *lanes) atOnce() int { return min(max(1, ls.round.Lanes.AtOnce), run.MaxActiveLanes) }

// share returns the part of the rest of the budget for one of several lanes: an equal part, or else what its first call
// needs. covered: the rest suffices. All lanes together keep to the budget; what one does not use is left when it ends.
func (ls *lanes) share(need run.Need, parts int) (b run.Budget, covered bool) {
	s := ls.state()
	b, left := s.Budget, restOf(s)
	for _, l := range ls.children.openLanes() {
		c := ls.budget(l)
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

// budget is the share of a lane: as its record has it, or as it was journaled.
func (ls *lanes) budget(l run.Lane) run.Budget {
	b := ls.children.of(ls.children.laneRunID(l)).budget
	if b == (run.Budget{}) && l.Budget != nil {
		return *l.Budget
	}
	return b
}

// raise raises the budget of a lane, and lets it continue. short: there is nothing more to give.
func (ls *lanes) raise(ctx workflow.Context, l run.Lane, parts int) (did, short bool, err error) {
	id := ls.children.laneRunID(l)
	c := ls.children.of(id)
	need := run.Need{Role: firstRole(ls.round.Round)}
	if c.found.Need != nil {
		need = *c.found.Need
	}
	more, covered := ls.share(need, parts)
	if !covered {
		return false, true, nil
	}
	was := ls.budget(l)
	c.budget = more // with the deadline and the hours of the run
	c.budget.CapUSD, c.budget.Tokens = run.Cents(was.CapUSD+more.CapUSD), was.Tokens+more.Tokens
	c.budget.Calls, c.budget.WarnUSD = was.Calls+more.Calls, run.Cents(was.WarnUSD+more.WarnUSD)
	if c.budget == was || need.OfTokens && more.Tokens <= 0 {
		c.budget = was
		return false, true, nil
	}
	c.found.Status, c.found.Reason = run.Running, "" // until it reports
	ls.children.tell(ctx, id, contract.VerbBudget, contract.Message{USD: c.budget.CapUSD, BudgetLimits: limitsOf(c.budget)})
	ls.children.tell(ctx, id, contract.VerbResume, contract.Message{})
	return true, false, ctx.Err()
}

// begin journals the start of a lane, and starts it.
func (ls *lanes) begin(ctx workflow.Context, place run.LanePlace) error {
	ev := run.ChildStart{RunID: place.ChildRunID(ls.in.Target.RunID, ls.state().Lanes.Stage), LanePlace: place}
	ls.journal.emit(ctx, run.KindChildStarted, ls.round.Stage, ev)
	if err := ls.journal.flush(ctx); err != nil {
		return err
	}
	return ls.start(ctx, place)
}

func (ls *lanes) start(ctx workflow.Context, place run.LanePlace) error {
	in := ls.input(ctx, place)
	err := ls.children.start(ctx, contract.ChildInput{Queue: workflow.GetInfo(ctx).TaskQueueName, Input: &in,
		Summary: "lane " + place.Name + " of run " + ls.in.Target.RunID})
	if err != nil {
		return fmt.Errorf("start lane %s: %w", place.Name, err)
	}
	return nil
}

// input is the input of a lane: that of its run, with its place.
func (ls *lanes) input(ctx workflow.Context, place run.LanePlace) contract.Input {
	s, in := ls.state(), ls.in
	id, stage := place.ChildRunID(in.Target.RunID, s.Lanes.Stage), ls.children.laneStage()
	in.Target.RunID, in.Target.Dir, in.Target.Epoch = id, path.Join(in.Target.Dir, place.Dir(stage)), 0
	in.Claim.RunID, in.Claim.CreatedAt, in.Claim.Projects = id, ls.journal.time(ctx), nil
	in.Snapshot, in.Reopen, in.Projects = nil, nil, nil
	given := s.Given(s.Lanes.Stage)
	start := in.Start
	start.RunID, start.CreatedAt, start.Epoch, start.State, start.From = id, in.Claim.CreatedAt, 1, &given, nil
	start.Lane = &run.LaneOf{RunID: ls.in.Target.RunID, Stage: stage, List: s.Lanes.Digest, Calls: ls.callPrefix(),
		Continues: ls.round.Lanes.Continues(), LanePlace: place}
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

// merge merges the lane that comes next in the order of the list.
func (ls *lanes) merge(ctx workflow.Context, next run.LaneName) error {
	l := ls.state().Lanes
	in := contract.MergeInput{Stage: ls.round.Stage, StageIndex: l.Stage, List: l.Digest, LaneName: next,
		Given: l.Given}
	in.Target, in.Tree, in.Message = ls.in.Target, *ls.workspace(), ls.round.Title
	var out contract.MergeResult
	summary := fmt.Sprintf("merge lane %d", next.Index+1)
	failed, err := ls.checkout.try(ctx, summary, contract.MergeLane, &in, &out)
	if err != nil {
		return fmt.Errorf("%s: %w", summary, err)
	}
	if failed != nil { // after the pause it is merged into the tree of then, which an operator may have edited
		ls.pause(ctx, run.PassFailed, summary+": "+errorMessage(failed), "")
		return nil
	}
	ls.host.stepDone()
	if out.Count > 0 {
		more := ""
		if n := out.Count - len(out.Conflicts); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		ls.journal.emit(ctx, run.KindChildEnded, ls.round.Stage, run.ChildEnd{
			RunID: out.RunID, LanePlace: out.Lane, Outcome: run.ChildConflict, Status: run.Done,
			Reason: "Its changes conflict with those of earlier lanes in " + strings.Join(out.Conflicts, ", ") + more + ".",
		})
		return nil
	}
	ev := run.ChildMerged{Index: out.Lane.Index, Key: out.Lane.Key, Name: out.Lane.Name, Tree: in.Tree.Tree,
		Commit: in.Tree.Commit, Verdict: out.Verdict, Approved: out.Approved}
	if c := out.Changes; c != nil {
		ev.Tree, ev.Commit, ev.Changed, ev.Files, ev.List = c.Tree, c.Commit, c.Changed, c.Files, c.List
	}
	ls.journal.emit(ctx, run.KindChildMerged, ls.round.Stage, ev)
	ls.journalRecovered(ctx, "", out.Recovered, 0)
	return nil
}

// toAsk is the first lane in the order of the list about which an operator is asked, and why.
func (ls *lanes) toAsk() (l run.Lane, why string) {
	all := slices.Concat(ls.children.openLanes(), ls.state().Lanes.Asked)
	slices.SortStableFunc(all, func(a, b run.Lane) int { return a.Index - b.Index })
	for _, l := range all {
		if why := ls.needs(l); why == run.LaneFailed || why == run.LaneCheck || why == run.LaneConflict {
			return l, why
		}
	}
	return run.Lane{}, ""
}

// askAbout asks about a lane that needs an operator. The status stays that of a run at work as long as others work.
func (ls *lanes) askAbout(ctx workflow.Context) error {
	q, open := ls.state().Open(run.QuestionGate)
	if l, why := ls.toAsk(); !open && why != "" && ls.state().Status == run.Running {
		id := ls.questions.request(ctx, ls.question(ctx, l, why))
		if q, open = ls.state().Open(run.QuestionGate); !open {
			return fmt.Errorf("ask about lane %s: the question %s is not open", l.Name, id)
		}
	}
	if !open || ls.working() > 0 || ls.state().Status != run.Running {
		return nil
	}
	ls.journal.emit(ctx, run.KindQuestionAwaited, ls.round.Stage, run.QuestionAwaited{ID: q.ID})
	return nil
}

// question returns the question about a lane, with what the answers do.
func (ls *lanes) question(ctx workflow.Context, l run.Lane, why string) run.QuestionRequested {
	f := ls.children.of(ls.children.laneRunID(l)).found
	ask := run.QuestionRequested{
		Kind: run.QuestionGate, Phase: ls.round.Stage, Round: l.Index + 1, Trigger: run.TriggerCheckFailed, Of: why,
		Beside: true, Deadlines: ls.questions.deadlines(ctx, nil),
	}
	text, then := l.Reason, " retry does the work again; continue_with_waiver leaves the lane out."
	switch {
	case why == run.LaneConflict:
		then = " retry does the work again on top of theirs; continue_with_waiver leaves the lane out."
	case why == run.LaneCheck:
		text, ask.Digest, ask.Artifacts, ask.LaneAsks = f.Question.Text, f.Question.Digest, f.Question.Artifacts, f.Question.ID
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

// closeQuestion closes the question about a lane that no longer needs this answer: an operator has decided at the lane,
// or it needs another one, which is asked for next.
func (ls *lanes) closeQuestion(ctx workflow.Context, l run.Lane, need string) {
	q, open := ls.questions.openLaneQuestion()
	if !open || q.Round != l.Index+1 || q.Of == need && (need != run.LaneCheck || q.LaneAsks == ls.asks(l)) {
		return
	}
	m := contract.Message{ID: q.ID, Action: run.ActionRetry, By: "lane " + l.Name}
	ls.journal.emit(ctx, run.KindGateDecided, q.Phase, ls.questions.decisionEvent(ctx, q, m))
	ls.questions.acted(q.ID)
}

// applyDecision executes the last decision about a lane.
func (ls *lanes) applyDecision(ctx workflow.Context) (did bool, err error) {
	d, made := ls.questions.laneDecision()
	if !made {
		return false, nil
	}
	ls.questions.acted(d.ID)
	for _, l := range slices.Concat(ls.children.openLanes(), ls.state().Lanes.Asked) {
		if l.Index+1 == d.Round {
			return true, ls.continueOne(ctx, l, *d)
		}
	}
	return false, nil
}

func (ls *lanes) continueOne(ctx workflow.Context, l run.Lane, d run.Decided) error {
	id, why := ls.children.laneRunID(l), ls.needs(l)
	c := ls.children.of(id)
	switch leave := d.Action == run.ActionContinueWithWaiver; {
	case l.Outcome != "" && leave:
		ls.skip(ctx, l, run.ChildCost{})
		return nil
	case l.Outcome != "":
		return ls.begin(ctx, ls.state().LaneAgain(l))
	case why == run.LaneCheck && d.LaneAsks == ls.asks(l): // else it asks another question, which its run asks next
		ls.children.tell(ctx, id, contract.VerbDecide, contract.Message{Action: d.Action, Feedback: d.Feedback, Note: d.Note, ID: d.LaneAsks})
		c.found.Status, c.found.Question = run.Running, nil // until it reports
	case why == run.LaneFailed && leave:
		l.Reason = run.Cut(cmp.Or(c.found.Detail, c.found.Reason), maxLaneText)
		cost := run.ChildCost{}
		if c.found.Cost != nil {
			cost = *c.found.Cost
		}
		ls.skip(ctx, l, cost)
		ls.children.cancel(ctx, []string{id})
	case why == run.LaneFailed:
		ls.children.tell(ctx, id, contract.VerbResume, contract.Message{Note: d.Note, Force: true, Reason: "retry of its run"})
		c.found.Status = run.Running
	}
	return ctx.Err()
}

// await waits until a lane changes, its question is decided or due, or a message asks for something.
func (ls *lanes) await(ctx workflow.Context) error {
	if err := ls.journal.flush(ctx); err != nil {
		return err
	}
	var remind time.Time
	expired := false
	q, asked := ls.questions.openLaneQuestion()
	if asked {
		remind, expired = nextDue(q, ls.questions.besideSince(q))
	}
	due, err := ls.wait(ctx, wait{name: waitLanes, until: remind, summary: "until the reminder for " + q.ID})
	if now, open := ls.questions.openLaneQuestion(); err != nil || !due || !open || now.ID != q.ID { // decided meanwhile
		return err
	}
	ls.questions.spoken(ctx)
	return ls.questions.remindOrExpire(ctx, q, expired)
}

// stop ends the open lanes of a run that ends or goes back, and journals what they have cost.
func (ls *lanes) stop(ctx workflow.Context) error {
	if len(ls.children.openLanes()) == 0 {
		return nil
	}
	ls.children.cancel(ctx, ls.children.openLaneIDs())
	return ls.children.awaitEnds(ctx, ls.children.openLaneIDs, func(ctx workflow.Context) error {
		if err := ls.round.read(ctx, run.Place{Stage: ls.state().Lanes.Stage, Round: 1}); err != nil {
			return err
		}
		return ls.read(ctx, true)
	})
}

// finish ends a lane whose steps are complete. Work that its roles do not approve is not merged without a question.
func (ls *lanes) finish(ctx workflow.Context) (*run.RunEnd, error) {
	s := ls.state()
	d, v := s.Decided, s.Judgement()
	waived := d != nil && d.Kind == run.QuestionGate && d.Action == run.ActionContinueWithWaiver
	if v.Approved == nil || *v.Approved || waived {
		return &run.RunEnd{Status: run.Done}, nil
	}
	if err := ls.failLane(notApproved(v) + "."); err != nil {
		return nil, err
	}
	ask := run.QuestionRequested{
		Kind: run.QuestionGate, Question: notApproved(v) + ".", Phase: ls.in.Start.Lane.Stage, Round: 1,
		Trigger: run.TriggerCheckFailed, Deadlines: ls.questions.deadlines(ctx, nil),
	}
	if s.Judged != nil && s.Judged.Reply != "" {
		ask.Digest = s.Judged.Reply
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "output", Digest: ask.Digest})
	}
	first := run.Place{Stage: len(ls.in.Start.Stages) - 1, Round: 1}
	return nil, ls.questions.ask(ctx, ask, routes{again: &first})
}

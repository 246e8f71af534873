package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// collector reads the events of a run once.
type collector struct {
	Record
	fold    *run.Fold
	reverts run.Reverts
	total   float64
	turns   int
	laneLog []laneChange
	failed  map[string]run.Totals // cost of attempts whose pass has not completed, by step, round and member
}

func (c *collector) add(e run.Event) {
	c.fold.Apply(e)
	c.reverts.Take(e)
	c.lane(e)
	if s := run.StoryOf(run.Entry{Event: e, After: c.fold.Current()}); s.What != "" {
		c.Actions = append(c.Actions, Action{Seq: e.Seq, At: e.TS, What: s.What, By: s.By, Note: s.Note})
	}
	if _, asks := e.Kind.Asks(); asks {
		c.ask(e)
		return
	}
	if _, answers := e.Kind.Answers(); answers {
		c.decide(e)
		return
	}
	switch e.Kind {
	case run.KindRunStart:
		c.start(e)
	case run.KindPhaseEnd:
		var p run.PhaseEnd
		e.Decode(&p)
		c.Phases = append(c.Phases, Phase{
			Seq: e.Seq, Name: p.Key, Round: p.Round, Outcome: p.Outcome, EndedAt: e.TS,
		})
	case run.KindPassAttempt:
		c.fail(e)
	case run.KindPassEnd:
		c.pass(e)
	case run.KindWorkspaceUpdated:
		c.changed(e)
	case run.KindWorkspaceTampered:
		c.tampered(e)
	case run.KindScoreRecorded:
		var p run.ScoreRecorded
		e.Decode(&p)
		c.Scores = append(c.Scores, Score{
			Seq: e.Seq, Name: p.Name, Round: p.Round, Score: p.Score, Threshold: p.Threshold, Met: p.Met, Why: p.Why,
		})
	case run.KindDeliveryCompleted:
		c.Delivery = &Delivery{Seq: e.Seq, At: e.TS}
		e.Decode(&c.Delivery.DeliveryCompleted)
		c.Delivery.Fresh = c.fold.Current().FreshText()
	case run.KindRunReverted:
		clear(c.failed)
	default:
		c.history(e)
	}
}

// history adds an event that only pages show.
func (c *collector) history(e run.Event) {
	h := &c.History
	switch e.Kind {
	case run.KindPhaseStart:
		var p run.PhaseStart
		if e.Decode(&p); e.Phase != nil {
			h.Stages[*e.Phase] = StageTitle{Title: p.Title, Repeats: p.Dir != "" || p.Round > 1}
		}
	case run.KindPassStart:
		var p run.PassStart
		if e.Decode(&p); p.Gives == "artifact" && p.Before != "" && h.Start.Artifact != nil {
			h.Backups[p.Before] = rundir.BackupFile(p.Pass, h.Start.Artifact.File)
		}
	case run.KindScreenshots:
		s := Shots{seq: e.Seq}
		e.Decode(&s.Screenshots)
		h.Shots = append(h.Shots, s)
	case run.KindBudgetRaised:
		var p run.BudgetEvent
		e.Decode(&p)
		c.allow(e, p.Budget)
	}
}

func (c *collector) allow(e run.Event, b run.Budget) {
	if b.CapUSD > 0 {
		c.History.Budgets = append(c.History.Budgets, Amount{At: e.TS, USD: b.CapUSD})
	}
}

func phaseOf(e run.Event) string {
	if e.Phase == nil {
		return ""
	}
	return *e.Phase
}

func passKey(p run.Pass) string { return fmt.Sprintf("%s/%d/%s", p.Step, p.Round, p.Member) }

func (c *collector) start(e run.Event) {
	var p run.RunStart
	e.Decode(&p)
	c.History.Start = p
	c.allow(e, p.Budget)
	c.RunID, c.Task, c.Pipeline, c.Definition = p.RunID, p.Task, p.Pipeline, p.Definition
	c.Parent, c.CreatedAt, c.Build = p.Parent, p.CreatedAt, p.Build
	if c.Adopted = p.Adopted; p.State != nil {
		c.Adopted = p.State.Adopted
	}
	if w := p.Workspace; w != nil {
		c.Workspace = &rundir.Workspace{
			Kind: w.Kind, Source: w.Source, Base: w.Base, Branch: w.Branch, Commit: w.Commit,
			Start: w.Tree.Digest, Tree: w.Tree.Digest,
		}
	}
	if p.Artifact != nil {
		c.Artifact = &Artifact{File: p.Artifact.File, Seed: p.Artifact.Seed.Digest, Now: p.Artifact.Seed.Digest}
	}
}

func (c *collector) fail(e run.Event) {
	var p run.PassAttempt
	if e.Decode(&p); p.Category == run.CategoryLost && p.Spend == nil {
		return // the call continues, or is made again
	}
	f := Failure{
		Seq: e.Seq, Number: p.Number, Step: p.Step, Round: p.Round, Role: p.Role, Member: p.Member, Item: p.Item,
		Attempt:  p.Attempt,
		Category: p.Category.In(c.fold.Current().Wording), Message: p.Message,
	}
	if f.CostKnown = run.CostExact; p.Category.Info().Retry == run.RetryAttempts && p.Category != run.CategorySpawnFailed {
		f.CostKnown = run.CostUnknown // it ran and reported nothing
	}
	if p.Spend != nil {
		f.USD, f.CostKnown = p.Spend.USD, cmp.Or(p.Spend.Known, run.CostExact)
		c.spend(e, p.Pass, *p.Spend)
		sum := c.failed[passKey(p.Pass)]
		sum.Add(*p.Spend)
		c.failed[passKey(p.Pass)] = sum
	}
	c.Failures = append(c.Failures, f)
}

// spend counts one call in the row of its role. The state may have one row for all calls of repeated stages.
func (c *collector) spend(e run.Event, p run.Pass, s run.Spend) {
	c.spent(e, s.USD)
	c.spendIn(p.Role, 1, s.USD, s.UnknownCalls())
}

// spendLane counts the calls of a lane, which its own journal has.
func (c *collector) spendLane(e run.Event, cost run.ChildCost) {
	if cost.Spent.Calls == 0 {
		return
	}
	c.spent(e, cost.Spent.USD)
	for _, r := range cost.ByRole {
		c.spendIn(r.Name, r.Calls, r.USD, r.Unknown)
	}
}

func (c *collector) spent(e run.Event, usd float64) {
	c.total = run.Cents(c.total + usd)
	c.History.Costs = append(c.History.Costs, Amount{At: e.TS, USD: c.total})
}

func (c *collector) spendIn(role string, calls int, usd float64, unknown int) {
	i := slices.IndexFunc(c.Spend.ByRole, func(r RoleCost) bool { return r.Role == role })
	if i < 0 {
		i = len(c.Spend.ByRole)
		c.Spend.ByRole = append(c.Spend.ByRole, RoleCost{Role: role})
	}
	r := &c.Spend.ByRole[i]
	r.Calls += calls
	r.USD = run.Cents(r.USD + usd)
	r.Unknown = max(0, r.Unknown+unknown)
}

func (c *collector) pass(e run.Event) {
	var p run.PassEnd
	e.Decode(&p)
	all := c.failed[passKey(p.Pass)]
	all.Add(p.Spend)
	r := passOf(e, p, all, c.fold.Current().Wording)
	if p.Turn() && c.Workspace != nil {
		c.turns++
		r.Turn = c.turns
	}
	delete(c.failed, passKey(p.Pass))
	c.spend(e, p.Pass, p.Spend)
	c.Passes = append(c.Passes, r)
}

// passOf returns a settled pass, which costs what all its attempts do.
func passOf(e run.Event, p run.PassEnd, cost run.Totals, w run.Wording) Pass {
	r := Pass{
		Seq: e.Seq, Number: p.Number, Step: p.Step, Call: p.Call, Stage: phaseOf(e), Round: p.Round, Role: p.Role,
		Member: p.Member, Item: p.Item, Title: p.Title, Outcome: p.Outcome.In(w),
		Attempts: p.Attempts, StartedAt: p.StartedAt, CompletedAt: p.CompletedAt, DurationMS: p.DurationMS,
		USD: cost.USD, Unknown: max(0, cost.Unknown), CostKnown: run.KnownOf(cost.USD, cost.Unknown),
		CostNote: costNote(p.Spend, cost.Unknown), Reused: p.Reused, Modified: p.Modified,
		Checks: p.Validation, Verdict: p.Verdict, Findings: p.Findings, Score: p.Score, Value: p.Value,
		Tampered: p.Tampered, Found: p.Found, Scope: p.Scope,
		Set: p.Set, Tally: p.Tally, Prompt: rundir.PromptFile(p.Pass), Frames: rundir.EnvelopeFile(p.Pass),
	}
	if p.Reply != nil {
		r.Reply = rundir.ReplyFile(p.Pass)
	}
	if p.Artifact != nil && p.Modified {
		r.Before, r.After = p.Before, p.Artifact.Digest
	}
	return r
}

// costNote is why the cost of a pass is not fully known, with its attempts.
func costNote(s run.Spend, unknown int) string {
	why := s.Why()
	if why == "" && unknown > 0 {
		return "that of an earlier attempt is not fully known"
	}
	return why
}

// tampered adds the protected files that a pass changed to it.
func (c *collector) tampered(e run.Event) {
	var t run.Tampered
	e.Decode(&t)
	for i := range slices.Backward(c.Passes) {
		if r := &c.Passes[i]; r.Step == t.Step && r.Call == t.Call {
			r.Tampered = &t
			return
		}
	}
}

// changed adds the changes of a pass to it. Changes without a call are manual edits.
func (c *collector) changed(e run.Event) {
	var p run.WorkspaceUpdated
	if e.Decode(&p); p.Cause != "" {
		return
	}
	for i := range slices.Backward(c.Passes) {
		if r := &c.Passes[i]; r.Step == p.Step && r.Call == p.Call {
			r.Changed, r.Files, r.Commit = p.Changed, p.Files, p.Commit
			return
		}
	}
}

// ask records a question.
func (c *collector) ask(e run.Event) {
	q, _ := e.Question()
	c.Decisions = append(c.Decisions, Decision{
		Seq: e.Seq, Kind: string(q.Kind), ID: q.ID, Question: q.Question, Trigger: q.Trigger,
		Phase: cmp.Or(q.Phase, phaseOf(e)), Round: q.Round,
		Judged: q.Digest, RequestedAt: e.TS, Subject: q.Subject,
	})
}

// decide records a valid answer.
func (c *collector) decide(e run.Event) {
	d, _ := e.Decision()
	if c.fold.Current().InvalidTransition != "" {
		return
	}
	c.answer(rundir.Decision{
		HandoffID: d.ID, Action: d.Action, Feedback: d.Feedback, Note: d.Note, DecidedBy: d.DecidedBy,
		DecidedAt: cmp.Or(d.DecidedAt, e.TS),
	})
}

// answer sets the answer of the last question with that id, unless it has one.
func (c *collector) answer(a rundir.Decision) {
	for i := range slices.Backward(c.Decisions) {
		if d := &c.Decisions[i]; d.ID == a.HandoffID && d.Action == "" {
			d.Action, d.Feedback, d.Note, d.By, d.DecidedAt = a.Action, a.Feedback, a.Note, a.DecidedBy, a.DecidedAt
			return
		}
	}
}

// dropReverted removes reverted work. Its costs and decisions stay.
func (c *collector) dropReverted(inForce run.Ranges) {
	all := len(c.Passes)
	c.Phases = slices.DeleteFunc(c.Phases, func(r Phase) bool { return !inForce.Has(r.Seq) })
	c.Passes = slices.DeleteFunc(c.Passes, func(r Pass) bool { return !inForce.Has(r.Seq) })
	c.Scores = slices.DeleteFunc(c.Scores, func(r Score) bool { return !inForce.Has(r.Seq) })
	c.History.Shots = slices.DeleteFunc(c.History.Shots, func(r Shots) bool { return !inForce.Has(r.seq) })
	c.Reverted = all - len(c.Passes)
	c.lanes(inForce)
}

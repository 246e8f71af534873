package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// collector goes through the events of a run once.
type collector struct {
	Evidence
	state  run.State
	failed map[string]float64 // what attempts have cost whose pass has not settled, by step, round and member
}

func (c *collector) add(e run.Event) {
	c.state = run.Apply(c.state, e)
	switch e.Kind {
	case run.KindRunStart:
		c.start(e)
	case run.KindPhaseEnd:
		var p run.PhaseEnd
		e.Decode(&p)
		c.Phases = append(c.Phases, Phase{Seq: e.Seq, Name: cmp.Or(p.Key, p.Title, phase(e)), Round: p.Round, Outcome: p.Outcome, EndedAt: e.TS})
	case run.KindPassAttempt:
		c.fail(e)
	case run.KindPassEnd:
		c.pass(e)
	case run.KindWorkspaceUpdated, run.KindArtifactUpdated:
		c.changed(e)
	case run.KindScoreRecorded:
		var p run.ScoreRecorded
		e.Decode(&p)
		c.Scores = append(c.Scores, Score{Seq: e.Seq, Name: p.Name, Round: p.Round, Score: p.Score, Threshold: p.Threshold, Met: p.Met, Why: p.Why})
	case run.KindHandoffRequested, run.KindGateRequested, run.KindReviewRequested, run.KindDeliveryRequested:
		c.ask(e)
	case run.KindHandoffDecided, run.KindGateDecided, run.KindReviewDecided, run.KindDeliveryDecided:
		c.decide(e)
	case run.KindDeliveryCompleted:
		c.Delivery = &Delivery{Seq: e.Seq, At: e.TS}
		e.Decode(&c.Delivery.DeliveryCompleted)
	case run.KindRunReverted:
		c.revert(e)
	default:
		c.intervene(e)
	}
}

func phase(e run.Event) string {
	if e.Phase == nil {
		return ""
	}
	return *e.Phase
}

func key(p run.Pass) string { return fmt.Sprintf("%s/%d/%s", p.Step, p.Round, p.Member) }

func (c *collector) start(e run.Event) {
	var p run.RunStart
	e.Decode(&p)
	c.RunID, c.Task, c.Pipeline, c.Definition, c.Parent, c.CreatedAt, c.Build = p.RunID, p.Task, p.Pipeline, p.Definition, p.Parent, p.CreatedAt, p.Build
	if w := p.Workspace; w != nil {
		c.Workspace = &rundir.Workspace{Kind: w.Kind, Source: w.Source, Base: w.Base, Branch: w.Branch, Commit: w.Commit, Start: w.Tree.Digest, Tree: w.Tree.Digest}
	}
	if p.Artifact != nil {
		c.Artifact = &Artifact{File: p.Artifact.File, Seed: p.Artifact.Seed.Digest, Now: p.Artifact.Seed.Digest}
	}
}

func (c *collector) fail(e run.Event) {
	var p run.PassAttempt
	e.Decode(&p)
	f := Failure{
		Seq: e.Seq, Number: p.Number, Step: p.Step, Round: p.Round, Role: p.Role, Member: p.Member, Attempt: p.Attempt, Category: p.Category, Message: p.Message,
	}
	if p.Spend != nil {
		f.USD = p.Spend.USD
		c.spend(p.Pass, f.USD)
	}
	c.failed[key(p.Pass)] += f.USD
	c.Failures = append(c.Failures, f)
}

// spend counts one call. The state has no row for each role: it takes the repeated stage for one (requirement 002 §1.6).
func (c *collector) spend(p run.Pass, usd float64) {
	i := slices.IndexFunc(c.Spend.ByRole, func(r RoleCost) bool { return r.Role == p.Role })
	if i < 0 {
		i = len(c.Spend.ByRole)
		c.Spend.ByRole = append(c.Spend.ByRole, RoleCost{Role: p.Role})
	}
	r := &c.Spend.ByRole[i]
	r.Calls++
	r.USD = run.Cents(r.USD + usd)
}

func (c *collector) pass(e run.Event) {
	var p run.PassEnd
	e.Decode(&p)
	r := Pass{
		Seq: e.Seq, Number: p.Number, Step: p.Step, Call: p.Call, Stage: phase(e), Round: p.Round, Role: p.Role, Member: p.Member, Title: p.Title, Outcome: p.Outcome,
		Attempts: p.Attempts, StartedAt: p.StartedAt, CompletedAt: p.CompletedAt, DurationMS: p.DurationMS,
		USD: run.Cents(p.Spend.USD + c.failed[key(p.Pass)]), Reused: p.Reused, Modified: p.Modified, Checks: p.Validation, Verdict: p.Verdict, Score: p.Score, Value: p.Value,
	}
	delete(c.failed, key(p.Pass))
	c.spend(p.Pass, p.Spend.USD)
	c.Passes = append(c.Passes, r)
}

// changed adds what a pass has changed to it. What nobody's call has changed was edited by hand.
func (c *collector) changed(e run.Event) {
	var p run.WorkspaceUpdated // an artifact's event has the same words for step, call and cause
	e.Decode(&p)
	if p.Cause != "" {
		what := "artifact " + p.Cause + " by hand"
		if e.Kind == run.KindWorkspaceUpdated {
			what = fmt.Sprintf("workspace %s by hand: %d files", p.Cause, p.Changed)
		}
		c.Actions = append(c.Actions, Action{Seq: e.Seq, At: e.TS, What: what})
		return
	}
	if e.Kind != run.KindWorkspaceUpdated {
		return
	}
	for i := range slices.Backward(c.Passes) {
		if r := &c.Passes[i]; r.Step == p.Step && r.Call == p.Call {
			r.Changed, r.Files, r.Commit = p.Changed, p.Files, p.Commit
			return
		}
	}
}

// ask notes a question. It is read from the event, not from the state: another program's stream has none of the answers.
func (c *collector) ask(e run.Event) {
	if e.Kind == run.KindHandoffRequested {
		var p run.HandoffRequested
		e.Decode(&p)
		c.Decisions = append(c.Decisions, Decision{
			Seq: e.Seq, Kind: "handoff", ID: p.HandoffID, Question: p.Question, Trigger: p.Trigger, Phase: cmp.Or(p.Phase, phase(e)), Round: p.Round,
			Judged: p.Digest, RequestedAt: e.TS,
		})
		return
	}
	var p run.Asked
	e.Decode(&p)
	kind, _, _ := strings.Cut(string(e.Kind), ".")
	c.Decisions = append(c.Decisions, Decision{
		Seq: e.Seq, Kind: kind, ID: p.ID, Question: p.Question, Trigger: p.Trigger, Phase: cmp.Or(p.Phase, phase(e)), Round: p.Round,
		Judged: p.Digest, RequestedAt: e.TS,
	})
}

// decide notes an answer. One that did not count is an intervention.
func (c *collector) decide(e run.Event) {
	var p struct {
		run.Answered
		HandoffID string `json:"handoff_id"`
	}
	e.Decode(&p)
	id := cmp.Or(p.ID, p.HandoffID)
	if c.state.Illegal != "" {
		c.Actions = append(c.Actions, Action{Seq: e.Seq, At: e.TS, What: "an answer that did not count: " + p.Action, By: p.DecidedBy, Note: p.Feedback})
		return
	}
	c.answer(rundir.Decision{HandoffID: id, Action: p.Action, Feedback: p.Feedback, Note: p.Note, DecidedBy: p.DecidedBy, DecidedAt: cmp.Or(p.DecidedAt, e.TS)})
}

// answer fills in the answer of the last question of that id, unless it has one.
func (c *collector) answer(a rundir.Decision) {
	for i := range slices.Backward(c.Decisions) {
		if d := &c.Decisions[i]; d.ID == a.HandoffID && d.Action == "" {
			d.Action, d.Feedback, d.Note, d.By, d.DecidedAt = a.Action, a.Feedback, a.Note, a.DecidedBy, a.DecidedAt
			return
		}
	}
}

// intervene notes what was done to the run from outside.
func (c *collector) intervene(e run.Event) {
	var p struct {
		Reason, Detail, By, Note, Verb, From, To string

		Epoch, Count int
		CapUSD       float64 `json:"cap_usd"`
	}
	e.Decode(&p)
	a := Action{Seq: e.Seq, At: e.TS, By: p.By, Note: strings.TrimSpace(p.Note + " " + p.Detail)}
	switch e.Kind {
	case run.KindRunPaused:
		a.What = "paused: " + p.Reason
	case run.KindRunResumed:
		a.What = fmt.Sprintf("resumed (epoch %d)", p.Epoch)
		a.Note = strings.TrimSpace(a.Note + " " + p.Reason)
	case run.KindRunInterrupted:
		a.What = "interrupted: " + p.Reason
	case run.KindBudgetRaised:
		a.What = fmt.Sprintf("budget raised to $%.2f", p.CapUSD)
	case run.KindDecisionRefused:
		a.What = "refused " + p.Verb + ": " + p.Reason
		if p.Count > 1 {
			a.What = fmt.Sprintf("refused %d messages, the last one %s: %s", p.Count, p.Verb, p.Reason)
		}
	case run.KindRunRehomed:
		a.What = fmt.Sprintf("directory moved from %s to %s", p.From, p.To)
	default:
		return
	}
	c.Actions = append(c.Actions, a)
}

// revert takes out what the run went back behind. What was spent stays spent, and what people decided stays told.
func (c *collector) revert(e run.Event) {
	var p run.RunReverted
	e.Decode(&p)
	before := len(c.Passes)
	c.Phases = slices.DeleteFunc(c.Phases, func(r Phase) bool { return r.Seq > p.To })
	c.Passes = slices.DeleteFunc(c.Passes, func(r Pass) bool { return r.Seq > p.To })
	c.Scores = slices.DeleteFunc(c.Scores, func(r Score) bool { return r.Seq > p.To })
	c.Reverted += before - len(c.Passes)
	clear(c.failed)
	c.Actions = append(c.Actions, Action{Seq: e.Seq, At: e.TS, What: fmt.Sprintf("went back to event %d (%s)", p.To, p.Cause)})
}

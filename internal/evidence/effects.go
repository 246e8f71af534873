package evidence

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Effects is the ledger of what a run did outside of it: one row for each call, command, screenshot and delivery, and
// for each of them that a replay reused or held back.
type Effects struct {
	RunID   string   `json:"run_id"`
	Replay  string   `json:"replay"` // policy of a replay; "": the run is none
	Source  string   `json:"source_run_id"`
	Effects []Effect `json:"effects"`
}

// What became of an effect.
const (
	Attempted  = "attempted"                    // begun without a result: only an operator can tell what happened
	Recorded   = "recorded"                     // it was done, and its result is recorded
	Failed     = "failed"                       // it was begun, and its result could not be used
	Reused     = "reused"                       // a replay took the recorded result of its source
	Blocked    = "blocked"                      // a replay asked before it
	Superseded = string(run.CategorySuperseded) // its result arrived after that of another delivery
)

// Effect is one row of the ledger.
type Effect struct {
	Seq      int64  `json:"seq"`
	At       string `json:"at"`
	Stage    string `json:"stage"`
	Step     string `json:"step"`
	Round    int    `json:"round"`
	Member   string `json:"member"`
	Role     string `json:"role"`
	Class    string `json:"class"`    // none, read, write or external_action
	Declared bool   `json:"declared"` // by the step's effect; else by its kind
	Call     string `json:"call"`
	Attempt  int    `json:"attempt"`
	Status   string `json:"status"`
	Result   string `json:"result"`     // id of the recorded call, commit of a delivery, or the failure
	Decision string `json:"decision"`   // action of the operator who was asked before it; "": no operator was
	Decided  string `json:"decided_by"` // who decided
	Reverted bool   `json:"reverted"`   // the run was reverted to an earlier point; the effect stays
	asked    string // id of the question
}

// ReadEffects returns the ledger of a run directory, from its events alone.
func ReadEffects(d rundir.Dir) (Effects, error) {
	c := effects{Effects: Effects{Effects: []Effect{}}}
	for line, err := range d.Lines(0) {
		if err != nil {
			return Effects{}, err
		}
		if line.Err == nil {
			c.add(line.Event)
		}
	}
	inForce := c.reverts.InForce()
	for i := range c.Effects.Effects {
		e := &c.Effects.Effects[i]
		e.Reverted = !inForce.Has(e.Seq)
	}
	return c.Effects, nil
}

// effects collects the ledger.
type effects struct {
	Effects
	reverts run.Reverts
	blocked int // index + 1 of the row whose question is next
}

func (c *effects) add(e run.Event) {
	c.reverts.Take(e)
	if _, answers := e.Kind.Answers(); answers {
		c.decide(e)
		return
	}
	if q, asks := e.Question(); asks {
		if c.blocked > 0 {
			c.Effects.Effects[c.blocked-1].asked = q.ID
			c.blocked = 0
		}
		return
	}
	switch e.Kind {
	case run.KindRunStart:
		var p run.RunStart
		e.Decode(&p)
		c.RunID = p.RunID
		if s := p.Source; s != nil && s.Mode == run.ModeReplay {
			c.Replay, c.Source = s.Replay, s.RunID
		}
	case run.KindPassStart:
		c.start(e)
	case run.KindPassAttempt:
		c.attempt(e)
	case run.KindPassEnd:
		c.end(e)
	case run.KindEffectReused, run.KindEffectBlocked:
		c.inReplay(e)
	case run.KindScreenshots:
		var p run.Screenshots
		e.Decode(&p)
		r := Effect{Step: p.Step, Round: p.Round, Role: "screenshots", Class: run.EffectRead, Attempt: p.Attempts,
			Status: Recorded}
		if p.Degraded {
			r.Status = Failed
		}
		c.row(e, r)
	case run.KindDeliveryCompleted:
		var p run.DeliveryCompleted
		if e.Decode(&p); p.Delivered {
			c.row(e, Effect{Step: "delivery", Role: "delivery", Class: run.EffectExternal, Status: Recorded, Attempt: 1,
				Result: p.Commit})
		}
	}
}

func (c *effects) row(e run.Event, r Effect) *Effect {
	r.Seq, r.At, r.Stage = e.Seq, e.TS, phase(e)
	c.Effects.Effects = append(c.Effects.Effects, r)
	return &c.Effects.Effects[len(c.Effects.Effects)-1]
}

// last returns the newest row of a call, or nil. The id of an event may end in the digest of the question.
func (c *effects) last(call string) *Effect {
	for i := range slices.Backward(c.Effects.Effects) {
		if r := &c.Effects.Effects[i]; r.Call != "" && (r.Call == call || strings.HasPrefix(call, r.Call+".")) &&
			r.Status != Blocked {
			return r
		}
	}
	return nil
}

// start adds a row for a call, unless it continues one whose result is still open.
func (c *effects) start(e run.Event) {
	var p run.PassStart
	e.Decode(&p)
	if r := c.last(p.Call); r != nil && r.Status == Attempted {
		return
	}
	r := Effect{Step: p.Step, Round: p.Round, Member: p.Member, Role: p.Role, Class: p.EffectClass(), Call: p.Call,
		Attempt: p.Attempt, Status: Attempted}
	if p.Effect != "" {
		r.Class, r.Declared = p.Effect, true
	}
	c.row(e, r)
}

func (c *effects) attempt(e run.Event) {
	var p run.PassAttempt
	e.Decode(&p)
	if p.Category == run.CategorySuperseded {
		c.row(e, Effect{Step: p.Step, Round: p.Round, Member: p.Member, Role: p.Role, Class: p.EffectClass(),
			Call: rundir.AttemptCall(p), Attempt: p.Attempt, Status: Superseded})
		return
	}
	if r := c.last(p.Call); r != nil && p.Judged {
		r.Status, r.Result = Failed, string(p.Category)
	}
}

func (c *effects) end(e run.Event) {
	var p run.PassEnd
	e.Decode(&p)
	r := c.last(p.Call)
	switch {
	case r == nil || r.Status == Reused || r.Status == Failed:
	case p.Outcome == run.CategoryOK:
		r.Status, r.Result, r.Call = Recorded, p.Value, p.Call
	default:
		r.Status, r.Result = Failed, string(p.Outcome)
	}
}

// inReplay marks the row of a call that a replay reused, or adds one for what it held back.
func (c *effects) inReplay(e run.Event) {
	var p run.Effect
	e.Decode(&p)
	if r := c.last(p.Call); p.Status == Reused && r != nil {
		r.Status, r.Result, r.Class = Reused, p.Result, p.Class
		return
	}
	status := p.Status
	if status == "" {
		status = Blocked
	}
	c.row(e, Effect{Step: p.Step, Role: p.Step, Class: p.Class, Call: p.Call, Status: status, Result: p.Result})
	if status == Blocked {
		c.blocked = len(c.Effects.Effects)
	}
}

// decide adds an answer to the row that it is about.
func (c *effects) decide(e run.Event) {
	d, _ := e.Decision()
	for i := range slices.Backward(c.Effects.Effects) {
		if r := &c.Effects.Effects[i]; r.asked != "" && r.asked == d.ID && r.Decision == "" {
			r.Decision, r.Decided = d.Action, d.DecidedBy
			return
		}
	}
}

// meaning explains the status of a row.
func (r Effect) meaning() string {
	text := map[string]string{
		Attempted: "begun; no result is recorded, so it may have happened", Recorded: "done; a replay reuses its result",
		Failed: "begun, and failed", Reused: "not done again: the recorded result was used",
		Blocked: "not done: an operator is asked first", Superseded: "done, beside the accepted one",
	}[r.Status]
	switch {
	case r.Status == Blocked && r.Decision == run.ActionApprove:
		text = "asked; approved, so it was done here"
	case r.Status == Blocked && r.Decision == run.ActionApply && r.Step == "delivery":
		text = "asked; the changes were put into the checkout"
	case r.Status == Blocked && r.Decision == run.ActionApply:
		text = "asked; the recorded result was to be used"
	case r.Status == Blocked && r.Decision != "":
		text = "asked; not done"
	}
	if r.Status == Failed && r.Class == run.EffectExternal {
		text = "begun without a usable result; it may have happened"
	}
	if r.Reverted {
		text += "; the run was reverted to an earlier point, and the effect stays"
	}
	return text
}

// Markdown writes the ledger for people.
func (l Effects) Markdown(to io.Writer) error {
	p := &page{to: to}
	p.line("# Effects of %s\n", cell(l.RunID))
	if l.Replay != "" {
		p.line("A replay of %s with the policy `%s`.\n", cell(l.Source), cell(l.Replay))
	}
	if len(l.Effects) == 0 {
		p.line("The run has done nothing yet.")
		return p.err
	}
	p.line("| event | step | round | class | call | attempt | status | meaning |")
	p.line("|---|---|---|---|---|---|---|---|")
	for _, r := range l.Effects {
		step, class, status := r.Step, r.Class, r.Status
		if r.Role != "" && r.Role != r.Step {
			step += " " + r.Role
		}
		if r.Declared {
			class += " (declared)"
		}
		if r.Decision != "" {
			status += fmt.Sprintf(", %s by %s", r.Decision, r.Decided)
		}
		p.line("| %d | %s | %d | %s | %s | %d | %s | %s |", r.Seq, cell(step), r.Round, cell(class), cell(r.Call), r.Attempt,
			cell(status), cell(r.meaning()))
	}
	return p.err
}

package view

import (
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
	EffectAttempted  = "attempted"                    // begun without a result: only an operator can tell what happened
	EffectRecorded   = "recorded"                     // it was done, and its result is recorded
	EffectFailed     = "failed"                       // it was begun, and its result could not be used
	EffectReused     = "reused"                       // a replay took the recorded result of its source
	EffectBlocked    = "blocked"                      // a replay asked before it
	EffectSuperseded = string(run.CategorySuperseded) // its result arrived after that of another delivery
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
			Status: EffectRecorded}
		if p.Degraded {
			r.Status = EffectFailed
		}
		c.row(e, r)
	case run.KindDeliveryCompleted:
		var p run.DeliveryCompleted
		if e.Decode(&p); p.Delivered {
			c.row(e, Effect{Step: "delivery", Role: "delivery", Class: run.EffectExternal, Status: EffectRecorded, Attempt: 1,
				Result: p.Commit})
		}
	}
}

func (c *effects) row(e run.Event, r Effect) *Effect {
	r.Seq, r.At, r.Stage = e.Seq, e.TS, phaseOf(e)
	c.Effects.Effects = append(c.Effects.Effects, r)
	return &c.Effects.Effects[len(c.Effects.Effects)-1]
}

// last returns the newest row of a call, or nil. The id of an event may end in the digest of the question.
func (c *effects) last(call string) *Effect {
	for i := range slices.Backward(c.Effects.Effects) {
		if r := &c.Effects.Effects[i]; r.Call != "" && (r.Call == call || strings.HasPrefix(call, r.Call+".")) &&
			r.Status != EffectBlocked {
			return r
		}
	}
	return nil
}

// start adds a row for a call, unless it continues one whose result is still open.
func (c *effects) start(e run.Event) {
	var p run.PassStart
	e.Decode(&p)
	if r := c.last(p.Call); r != nil && r.Status == EffectAttempted {
		return
	}
	r := Effect{Step: p.Step, Round: p.Round, Member: p.Member, Role: p.Role, Class: p.EffectClass(), Call: p.Call,
		Attempt: p.Attempt, Status: EffectAttempted}
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
			Call: rundir.AttemptCall(p), Attempt: p.Attempt, Status: EffectSuperseded})
		return
	}
	if r := c.last(p.Call); r != nil && p.Judged {
		r.Status, r.Result = EffectFailed, string(p.Category)
	}
}

func (c *effects) end(e run.Event) {
	var p run.PassEnd
	e.Decode(&p)
	r := c.last(p.Call)
	switch {
	case r == nil || r.Status == EffectReused || r.Status == EffectFailed:
	case p.Outcome == run.CategoryOK:
		r.Status, r.Result, r.Call = EffectRecorded, p.Value, p.Call
	default:
		r.Status, r.Result = EffectFailed, string(p.Outcome)
	}
}

// inReplay marks the row of a call that a replay reused, or adds one for what it held back.
func (c *effects) inReplay(e run.Event) {
	var p run.Effect
	e.Decode(&p)
	if r := c.last(p.Call); p.Status == EffectReused && r != nil {
		r.Status, r.Result, r.Class = EffectReused, p.Result, p.Class
		return
	}
	status := p.Status
	if status == "" {
		status = EffectBlocked
	}
	c.row(e, Effect{Step: p.Step, Role: p.Step, Class: p.Class, Call: p.Call, Status: status, Result: p.Result})
	if status == EffectBlocked {
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

package workflows

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// Names of the messages. Each is a signal and an Update; both end in control.apply.
const (
	VerbPause  = "pause"
	VerbResume = "resume"
	VerbBudget = "budget"
	VerbSteer  = "steer"
)

// Message is the payload of signals and Updates. Its keys are lower case because operators type them.
type Message struct {
	By   string  `json:"by,omitempty"`
	Note string  `json:"note,omitempty"`
	Now  bool    `json:"now,omitempty"` // pause, steer: cancel the running call instead of waiting for it
	USD  float64 `json:"usd,omitempty"` // budget: the new cap
	BudgetLimits
	Force bool `json:"force,omitempty"` // resume: even after repeated failures of the same pass; needs a reason

	To         string `json:"to,omitempty"`   // revert: the checkpoint, or a boundary such as pass-35
	StayPaused bool   `json:"rest,omitempty"` // revert: stay paused there

	Action   string `json:"action,omitempty"`   // decide: continue, retry_feedback, continue_with_waiver or halt
	Feedback string `json:"feedback,omitempty"` // decide: the text that retry_feedback and continue_with_waiver need
	ID       string `json:"id,omitempty"`       // decide: id of the hand-off; optional while only one is open
	Implicit bool   `json:"implicit,omitempty"` // decide: the program filled in the id of the only open one

	Reason string `json:"reason,omitempty"` // resume: why it is forced; journaled

	Text string `json:"text,omitempty"` // steer: the instruction
	Role string `json:"role,omitempty"` // steer: whose next prompt contains it; empty: that of every role

	Plan *run.PlanRef `json:"plan,omitempty"` // amend: the new plan, in the store
}

// Ack is the result of an Update.
type Ack struct {
	RunID   string     `json:"run_id"`
	Status  run.Status `json:"status"`
	Message string     `json:"said"`
}

// Control is what messages requested and the main loop has not done yet.
type Control struct {
	Pause   bool   `json:"pause,omitempty"`
	PauseBy string `json:"pause_by,omitempty"`
	Now     bool   `json:"now,omitempty"`
	Resume  bool   `json:"resume,omitempty"`
	By      string `json:"by,omitempty"`
	Note    string `json:"note,omitempty"`
	Force   bool   `json:"force,omitempty"`
	Reason  string `json:"reason,omitempty"` // for force

	Revert *PendingRevert `json:"revert,omitempty"`
}

type control struct {
	e *engine
	Control
	unflushed     bool  // an event waits to be written to the directory
	err           error // a message could not be journaled and has no sender to report to: the main loop fails the run
	retryRequests int   // requests that a full disk delays: each triggers a retry at once
	busy          int   // signals being handled
	looks, looked int   // requests to compare the directory, and how many of them are done

	unwritten  []run.DecisionRefused // messages since the last write
	superseded []run.DecisionRefused // messages that do not count, because the directory is newer

	refusals RefusedSignals
}

func descriptions(runID string) []struct{ verb, signal, update string } {
	return []struct{ verb, signal, update string }{
		{
			VerbPause, "Pause after the running pass. {\"now\":true} cancels the running call instead.",
			"Pause; returns when the pause is recorded.",
		},
		{VerbResume, "Resume a paused run.", "Resume a paused run; refused while the cause persists."},
		{
			VerbDecide, "Decide the open hand-off: {\"action\":\"continue\"}.",
			"Decide the open hand-off; refused if it is closed, has another id, or was decided differently.",
		},
		{
			VerbRevert, "Revert a paused run to a checkpoint and continue from there: {\"to\":\"cp-S3\"}.",
			"Revert a paused run to a checkpoint; refused unless it is paused.",
		},
		{
			VerbAmend, "Amend the definition; run \"starter amend " + shell.Quote(runID) + " --config FILE\".",
			"Amend the definition; refused if completed steps or the plan's structure differ.",
		},
		{
			VerbSteer, "Add an instruction to the next prompts: {\"text\":\"…\",\"role\":\"builder\"}. " +
				"{\"now\":true} interrupts the running call for it.",
			"Add an instruction to the next prompts; refused if the run has ended or has no such role.",
		},
		{VerbBudget, "Set the budget: {\"usd\":500}.", "Set the budget; refused if it is below the current cost."},
		{VerbLook, "Compare the run directory with the workflow.",
			"Compare the run directory with the workflow; the next execution continues from one with later events."},
	}
}

// registerHandlers must be called before the workflow yields for the first time.
func (c *control) registerHandlers(ctx workflow.Context) error {
	for _, d := range descriptions(c.runID()) {
		verb := d.verb
		handle := func(ctx workflow.Context, m Message) (Ack, error) {
			if err := c.awaitHost(ctx, verb); err != nil {
				return Ack{}, err
			}
			m, err := c.redacted(ctx, m)
			if err != nil {
				return Ack{}, err
			}
			still := standsStill(c.e.j.state)
			ack, err := c.handle(ctx, verb, m)
			switch {
			case still || c.e.j.newer:
				err = cmp.Or(c.confirm(ctx), err)
			case err == nil:
				c.note(verb, m)
			}
			return ack, err
		}
		opts := workflow.UpdateHandlerOptions{
			Description: d.update,
			Validator: func(_ workflow.Context, m Message) error {
				if c.e.j.newer { // the handler refuses it as superseded
					return nil
				}
				if m.lacksReason(verb) {
					return c.errReasonRequired()
				}
				return c.validate(verb, m)
			},
		}
		if err := workflow.SetUpdateHandlerWithOptions(ctx, verb, handle, opts); err != nil {
			return err
		}
		ch := workflow.GetSignalChannelWithOptions(ctx, verb, workflow.SignalChannelOptions{Description: d.signal})
		workflow.GoNamed(ctx, "signal "+verb, func(ctx workflow.Context) {
			for {
				var raw converter.RawValue
				ch.Receive(ctx, &raw)
				if c.awaitOpen(ctx) != nil {
					return // cancelled: the end of the execution drains the rest
				}
				c.handleSignal(ctx, verb, raw)
			}
		})
	}
	c.listenToChildren(ctx)
	return nil
}

// awaitOpen waits until this execution owns the directory: nothing is journaled before.
func (c *control) awaitOpen(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool { return c.e.open })
}

// awaitHost is awaitOpen for Updates, whose sender waits. A pause needs no directory and returns at once. Other
// messages are refused if no worker opens the directory.
func (c *control) awaitHost(ctx workflow.Context, verb string) error {
	if verb == VerbPause {
		return nil
	}
	ok, err := awaitFor(ctx, hostTimeout, "until the directory is open",
		func() bool { return c.e.open || c.e.noWorker })
	if err != nil || c.e.open {
		return err
	}
	c.e.noWorker = c.e.noWorker || !ok // the next message is refused at once
	return unmet("the run directory %s is not open. %s", c.e.in.Target.Dir, startWorkerHint(c.e.in.DirQueue))
}

// handle does what a message asks for, if it is still valid.
func (c *control) handle(ctx workflow.Context, verb string, m Message) (Ack, error) {
	if err := c.validate(verb, m); err != nil { // what was valid on acceptance may not be now
		return Ack{}, err
	}
	if m.lacksReason(verb) {
		return Ack{}, c.errReasonRequired()
	}
	ack, err := c.apply(ctx, verb, m)
	c.e.showDetails(ctx)
	return ack, err
}

// lacksReason reports whether a message forces something without a reason. A note counts as a reason: earlier
// releases sent it that way.
func (m Message) lacksReason(verb string) bool {
	return verb == VerbResume && m.Force && strings.TrimSpace(m.Reason) == "" && strings.TrimSpace(m.Note) == ""
}

func (c *control) errReasonRequired() error {
	return refuse("force needs a reason, run: starter resume %s --force --reason TEXT", shell.Quote(c.runID()))
}

func (c *control) runID() string { return c.e.in.Target.RunID }

// drainSignals handles signals that have arrived and were not received: no signal is lost at the end of an
// execution.
func (c *control) drainSignals(ctx workflow.Context) {
	for _, d := range descriptions(c.runID()) {
		ch := workflow.GetSignalChannel(ctx, d.verb)
		for raw := (converter.RawValue{}); ch.ReceiveAsync(&raw); raw = (converter.RawValue{}) {
			c.handleSignal(ctx, d.verb, raw)
		}
	}
}

// handleSignal handles one signal. One that is invalid is journaled as refused: it never fails the run.
func (c *control) handleSignal(ctx workflow.Context, verb string, raw converter.RawValue) {
	c.busy++
	defer func() { c.busy-- }()
	m, err := readMessage(raw)
	if err == nil {
		m, err = c.redacted(ctx, m)
	}
	if err == nil {
		_, err = c.handle(ctx, verb, m)
	}
	if err == nil || c.e.j.newer {
		c.note(verb, m)
		return
	}
	c.deferError(c.journalRefused(ctx, run.DecisionRefused{Verb: verb, Reason: errorMessage(err), By: m.By}))
}

// note remembers a message until the next write: it does not count if the directory is found newer. Of many, the last ones
// are forgotten.
func (c *control) note(verb string, m Message) {
	if verb != VerbLook && len(c.unwritten) < maxRefusedEvents {
		c.unwritten = append(c.unwritten, run.DecisionRefused{Verb: verb, Reason: "the run directory had later events", By: m.By})
	}
}

// maxMessage is the maximum size of a message in bytes.
const maxMessage = 32 << 10

// maxFeedback is the maximum size of a decision's texts in bytes of JSON: they are part of the state.
const maxFeedback = 8 << 10

func encodedSize(texts ...string) (n int) {
	for _, t := range texts {
		raw, err := json.Marshal(t)
		if err != nil {
			return maxMessage
		}
		n += len(raw)
	}
	return n
}

// readMessage decodes a signal's payload. `temporal workflow signal --name pause` sends none: the message is
// empty.
func readMessage(raw converter.RawValue) (Message, error) {
	var m Message
	p := raw.Payload()
	switch size := len(p.GetData()); {
	case size > maxMessage:
		return m, refuse("the message has %d bytes; the maximum is %d", size, maxMessage)
	case size == 0:
		return m, nil
	}
	if err := converter.GetDefaultDataConverter().FromPayload(p, &m); err != nil {
		return Message{}, refuse("decode the message: %v; send JSON such as {\"note\":\"…\"}", err)
	}
	return m, nil
}

// redacted removes secrets from a message before it is journaled. It is a side effect, so that a replay gets the
// same text even if its worker knows other secrets.
func (c *control) redacted(ctx workflow.Context, m Message) (Message, error) {
	if m.Note+m.Feedback+m.Reason+m.Text == "" && (m.Action == "" || run.KnownAction(m.Action)) {
		return m, nil
	}
	var out Message
	err := workflow.SideEffect(ctx, func(workflow.Context) any { return m.Redacted(c.e.redact) }).Get(&out)
	return out, err
}

// Redacted returns the message without secrets.
func (m Message) Redacted(hide func(string) string) Message {
	for _, text := range []*string{&m.By, &m.Note, &m.Feedback, &m.Reason, &m.Text} {
		*text = hide(*text)
	}
	if !run.KnownAction(m.Action) {
		m.Action = hide(m.Action)
	}
	return m
}

// record journals an event and has the flusher write it to the directory. A message is accepted only once its
// event is journaled.
func (c *control) record(ctx workflow.Context, kind run.Kind, payload any) error {
	if err := c.e.j.emit(ctx, kind, c.e.j.state.Phase, payload); err != nil {
		return fmt.Errorf("journal %s: %w", kind, err)
	}
	c.unflushed = true
	return nil
}

// deferError keeps an error without a sender for the main loop.
func (c *control) deferError(err error) { c.err = errors.Join(c.err, err) }

// validate reports why a message cannot be acted on now. It changes nothing.
func (c *control) validate(verb string, m Message) error {
	s := c.e.j.state
	if size := len(m.By) + len(m.Note) + len(m.Feedback) + len(m.Action) + len(m.ID) +
		len(m.To) + len(m.Reason) + len(m.Text) + len(m.Role); size > maxMessage {
		return refuse("the message has %d bytes; the maximum is %d", size, maxMessage)
	}
	if s.Status == run.Done {
		return conflict(s, operationOf(verb), DoneIsFinal)
	}
	if s.Status.Closed() {
		return conflict(s, operationOf(verb), "the run is %s: it accepts no more messages", s.Status)
	}
	switch verb {
	case VerbPause:
		begun := s.Status != "" && s.Status != run.Unknown
		if err := run.May(s.Status, run.Pause, run.Terms{}); begun && err != nil {
			return conflict(s, run.Pause, "the run is %s: there is nothing to pause", s.Status)
		}
	case VerbResume:
		if s.Status != run.Paused && s.Status != run.WaitingLimit && !c.Pause {
			instead := ""
			if _, open := s.Asks(); open {
				instead = "; answer its question (starter decide)"
			}
			return conflict(s, run.Resume, "the run is %s: only a paused run can be resumed%s", s.Status, instead)
		}
		if c.Revert != nil {
			return unmet("the run is being reverted to %s and continues from there", c.Revert.To)
		}
		if s.Reason == run.BudgetThreshold && s.BudgetShort() {
			why := fmt.Sprintf("the run has cost %.2f USD of a budget of %.2f USD", s.Total(), s.Budget.CapUSD)
			if use, spent := s.SpentBudget(""); s.Need != nil || spent && use.Name != run.BudgetUSD {
				why = s.BudgetWords()
			}
			name, value := s.Raise()
			return unmet("%s: raise the budget first, run: %s", why,
				shell.Line("starter", "budget", c.runID(), "--"+name, value))
		}
		if s.Reason == run.ConsecutiveFailures && !m.Force {
			return unmet("%s. Fix the cause, then run: starter resume %s --force --reason TEXT", repeatedFailure(s),
				shell.Quote(c.runID()))
		}
	case VerbDecide:
		if size := encodedSize(m.Feedback, m.Note); size > maxFeedback {
			return refuse("feedback and note have %d bytes; the maximum is %d: put the rest into a file and name "+
				"the file",
				size, maxFeedback)
		}
		_, err := validateDecision(s, m)
		return err
	case VerbRevert:
		return c.validateRevert(m)
	case VerbAmend:
		return c.validateAmend(m)
	case VerbBudget:
		return c.validateBudget(m)
	case VerbSteer:
		return c.validateSteer(m)
	}
	return nil
}

// repeatedFailure describes what failed repeatedly.
func repeatedFailure(s run.State) string {
	if f := s.Failure; f != nil {
		return fmt.Sprintf("%s failed in %d consecutive starts, last with %s: %s", f.Step, f.Starts, f.Category,
			f.Message)
	}
	return fmt.Sprintf("%d consecutive passes failed", s.Passes.InRow)
}

// apply records what a message requests and returns at once; the main loop acts at its next boundary.
func (c *control) apply(ctx workflow.Context, verb string, m Message) (Ack, error) {
	s := c.e.j.state
	switch verb {
	case VerbPause:
		c.Pause, c.PauseBy, c.Note, c.Now = true, m.By, m.Note, c.Now || m.Now
		if s.Status == run.WaitingLimit {
			return c.ack("pausing"), nil
		}
		if m.Now {
			c.e.cancelCalls()
			return c.ack("ending the running call and pausing; resume repeats its pass"), nil
		}
		return c.ack("pausing after the running pass"), nil
	case VerbResume:
		if s.Status != run.Paused && c.Pause {
			c.Control = Control{} // the pause had not begun
			return c.ack("pause cancelled"), nil
		}
		c.Resume, c.By, c.Note, c.Force, c.Reason, c.Pause, c.Now = true, m.By, m.Note, m.Force, m.Reason, false, false
		c.retryRequests++
		if s.Status == run.WaitingLimit {
			return c.ack("trying at once"), nil
		}
		return c.ack("resuming"), nil
	case VerbDecide:
		return c.decide(ctx, m)
	case VerbRevert:
		c.Revert = &PendingRevert{To: m.To, By: m.By, Note: m.Note, StayPaused: m.StayPaused}
		c.retryRequests++
		return c.ack("reverting to " + m.To), nil
	case VerbAmend:
		return c.amend(ctx, m)
	case VerbSteer:
		return c.steer(ctx, m)
	case VerbLook:
		c.looks++
		for _, id := range workflow.DeterministicKeys(c.e.children) {
			c.e.children[id].changed = true
		}
		return c.ack("the workflow has every event of the directory"), nil
	case VerbBudget:
		b := m.budget(s.Budget, c.e.budgetWarnShare())
		if err := c.record(ctx, run.KindBudgetRaised, run.BudgetEvent{
			Budget: b, TotalUSD: s.Total(), By: m.By, Note: m.Note,
		}); err != nil {
			return Ack{}, err
		}
		text := "the budget is " + m.budgetText()
		if now := c.e.j.state; now.Status == run.Paused && now.Reason == run.BudgetThreshold && now.BudgetShort() {
			text += ", and too small to continue: " + now.BudgetWords()
		}
		return c.ack(text), nil
	}
	return Ack{}, refuse("unknown message %q", verb)
}

func (c *control) ack(text string) Ack {
	return Ack{RunID: c.e.in.Target.RunID, Status: c.e.j.state.Status, Message: text}
}

// startFlusher starts the coroutine that writes journaled events, and compares the directory for messages, while the main
// loop waits for something else.
func (c *control) startFlusher(ctx workflow.Context) {
	workflow.GoNamed(ctx, "flusher", func(ctx workflow.Context) {
		wanted := func() bool { return c.e.open && (c.looked < c.looks || c.unflushed && c.e.j.waiting == 0) }
		for workflow.Await(ctx, wanted) == nil {
			looks, write := c.looks, c.e.j.flush
			if c.unflushed = false; c.looked < looks {
				write = c.e.j.look
			}
			if err := write(ctx); err != nil { // events stay pending: the main loop writes them or fails
				workflow.GetLogger(ctx).Error("compare or write the run directory", "error", err)
			}
			c.looked = looks
		}
	})
}

package workflows

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
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

// registerHandlers must be called before the workflow yields for the first time.
func (c *control) registerHandlers(ctx workflow.Context) error {
	for _, kind := range messages(c.runID()) {
		verb := kind.verb
		handle := func(ctx workflow.Context, m Message) (Ack, error) {
			if err := c.awaitHost(ctx, verb); err != nil {
				return Ack{}, err
			}
			m, err := c.redacted(ctx, m)
			if err != nil {
				return Ack{}, err
			}
			still := standsStill(c.e.j.state)
			ack, err := c.handle(ctx, kind, m)
			switch {
			case still || c.e.j.newer:
				err = cmp.Or(c.confirm(ctx), err)
			case err == nil:
				c.note(verb, m)
			}
			return ack, err
		}
		opts := workflow.UpdateHandlerOptions{
			Description: kind.update,
			Validator: func(_ workflow.Context, m Message) error {
				if c.e.j.newer { // the handler refuses it as superseded
					return nil
				}
				return c.validate(kind, m)
			},
		}
		if err := workflow.SetUpdateHandlerWithOptions(ctx, verb, handle, opts); err != nil {
			return err
		}
		ch := workflow.GetSignalChannelWithOptions(ctx, verb, workflow.SignalChannelOptions{Description: kind.signal})
		workflow.GoNamed(ctx, "signal "+verb, func(ctx workflow.Context) {
			for {
				var raw converter.RawValue
				ch.Receive(ctx, &raw)
				if c.awaitOpen(ctx) != nil {
					return // cancelled: the end of the execution drains the rest
				}
				c.handleSignal(ctx, kind, raw)
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
func (c *control) handle(ctx workflow.Context, kind message, m Message) (Ack, error) {
	if err := c.validate(kind, m); err != nil { // what was valid on acceptance may not be now
		return Ack{}, err
	}
	ack, err := kind.apply(c, ctx, m)
	c.e.showDetails(ctx)
	return ack, err
}

func (c *control) runID() string { return c.e.in.Target.RunID }

// drainSignals handles signals that have arrived and were not received: no signal is lost at the end of an
// execution.
func (c *control) drainSignals(ctx workflow.Context) {
	for _, kind := range messages(c.runID()) {
		ch := workflow.GetSignalChannel(ctx, kind.verb)
		for raw := (converter.RawValue{}); ch.ReceiveAsync(&raw); raw = (converter.RawValue{}) {
			c.handleSignal(ctx, kind, raw)
		}
	}
}

// handleSignal handles one signal. One that is invalid is journaled as refused: it never fails the run.
func (c *control) handleSignal(ctx workflow.Context, kind message, raw converter.RawValue) {
	c.busy++
	defer func() { c.busy-- }()
	m, err := readMessage(raw)
	if err == nil {
		m, err = c.redacted(ctx, m)
	}
	if err == nil {
		_, err = c.handle(ctx, kind, m)
	}
	if err == nil || c.e.j.newer {
		c.note(kind.verb, m)
		return
	}
	c.deferError(c.journalRefused(ctx, run.DecisionRefused{Verb: kind.verb, Reason: errorMessage(err), By: m.By}))
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

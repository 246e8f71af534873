package workflows

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

type control struct {
	e *engine
	contract.Control
	unflushed     bool  // an event waits to be written to the directory
	err           error // a message could not be journaled and has no sender to report to: the main loop fails the run
	retryRequests int   // requests that a full disk delays: each triggers a retry at once
	busy          int   // signals being handled
	looks, looked int   // requests to compare the directory, and how many of them are done

	unwritten  []run.DecisionRefused // messages since the last write
	superseded []run.DecisionRefused // messages that do not count, because the directory is newer

	refusals contract.RefusedSignals
}

// registerHandlers must be called before the workflow yields for the first time.
func (c *control) registerHandlers(ctx workflow.Context) error {
	for _, kind := range messages(c.runID()) {
		verb := kind.verb
		handle := func(ctx workflow.Context, m contract.Message) (contract.Ack, error) {
			if err := c.awaitHost(ctx, verb); err != nil {
				return contract.Ack{}, err
			}
			m, err := c.redacted(ctx, m)
			if err != nil {
				return contract.Ack{}, err
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
			Validator: func(_ workflow.Context, m contract.Message) error {
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
	if verb == contract.VerbPause {
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
func (c *control) handle(ctx workflow.Context, kind message, m contract.Message) (contract.Ack, error) {
	if err := c.validate(kind, m); err != nil { // what was valid on acceptance may not be now
		return contract.Ack{}, err
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
func (c *control) note(verb string, m contract.Message) {
	if verb != contract.VerbLook && len(c.unwritten) < maxRefusedEvents {
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
func readMessage(raw converter.RawValue) (contract.Message, error) {
	var m contract.Message
	p := raw.Payload()
	switch size := len(p.GetData()); {
	case size > maxMessage:
		return m, refuse("the message has %d bytes; the maximum is %d", size, maxMessage)
	case size == 0:
		return m, nil
	}
	if err := converter.GetDefaultDataConverter().FromPayload(p, &m); err != nil {
		return contract.Message{}, refuse("decode the message: %s; send JSON such as {\"note\":\"…\"}", unreadable(p.GetData(), err))
	}
	return m, nil
}

// unreadable is why a payload is not a message.
func unreadable(raw []byte, err error) string {
	var wrong *json.UnmarshalTypeError
	switch cause := json.Unmarshal(raw, new(contract.Message)); {
	case errors.As(cause, &wrong):
		key := strings.TrimPrefix(wrong.Field, "BudgetLimits.") // which it embeds
		return fmt.Sprintf("%s has the wrong JSON type: %s", cmp.Or(key, "it"), wrong.Value)
	case cause != nil:
		return cause.Error()
	}
	return err.Error()
}

// redacted removes secrets from a message before it is journaled. It is a side effect, so that a replay gets the
// same text even if its worker knows other secrets.
func (c *control) redacted(ctx workflow.Context, m contract.Message) (contract.Message, error) {
	if m.Note+m.Feedback+m.Reason+m.Text == "" && (m.Action == "" || run.KnownAction(m.Action)) {
		return m, nil
	}
	var out contract.Message
	err := workflow.SideEffect(ctx, func(workflow.Context) any { return m.Redacted(c.e.redact) }).Get(&out)
	return out, err
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

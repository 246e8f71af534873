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

// inbox is what messages have requested, and the loop has not done yet.
type inbox struct {
	*execution
	asked    contract.Control
	err      error // a message could not be journaled and has no sender to report to: the loop fails the run
	requests int   // that a full disk or a missing host delays: each triggers a retry at once
	tryNow   bool  // an operator asks for a call, whatever limits it waits for
	busy     int   // signals being handled
	open     bool  // this execution owns the directory: messages may be handled
	noWorker bool  // no worker has opened the directory for some time

	unwritten  []run.DecisionRefused // messages since the last write
	superseded []run.DecisionRefused // messages that do not count, because the directory is newer
	refusals   contract.RefusedSignals
	redact     func(string) string // only in side effects: workers may know different secrets
}

// load continues the inbox of the last execution.
func (ib *inbox) load(s *contract.Snapshot) { ib.asked, ib.refusals = s.Control, s.Refusals }

// save adds to a snapshot what the next execution loads.
func (ib *inbox) save(s *contract.Snapshot) { s.Control, s.Refusals = ib.asked, ib.refusals }

func (ib *inbox) pauses() bool { return ib.asked.Pause }

func (ib *inbox) pausesNow() bool { return ib.asked.Now }

func (ib *inbox) pauseBy() string { return ib.asked.PauseBy }

func (ib *inbox) pauseNote() string { return ib.asked.Note }

// pauseBegun forgets the request of a pause.
func (ib *inbox) pauseBegun() { ib.asked.Pause, ib.asked.Now = false, false }

func (ib *inbox) resumes() bool { return ib.asked.Resume }

// reverts returns the requested revert, or nil.
func (ib *inbox) reverts() *contract.PendingRevert { return ib.asked.Revert }

func (ib *inbox) revert(r *contract.PendingRevert) { ib.asked.Revert = r }

func (ib *inbox) failed() error { return ib.err }

// requested counts the requests for a retry.
func (ib *inbox) requested() int { return ib.requests }

// take returns what is requested, and forgets it.
func (ib *inbox) take() contract.Control {
	c := ib.asked
	ib.asked = contract.Control{}
	ib.tryNow = ib.tryNow || c.Resume
	return c
}

// try lets the next call wait for no limit.
func (ib *inbox) try(now bool) { ib.tryNow = now }

// opened lets messages be handled.
func (ib *inbox) opened() { ib.open = true }

func (ib *inbox) isOpen() bool { return ib.open }

// written forgets the messages since the last write.
func (ib *inbox) written() { ib.unwritten = nil }

// counted are the refused signals since the last event about them.
func (ib *inbox) counted() int { return ib.refusals.Counted }

// uncounted are the messages that do not count.
func (ib *inbox) uncounted() []run.DecisionRefused { return ib.superseded }

// supersede is for an execution whose directory is newer: its messages do not count.
func (ib *inbox) supersede() {
	ib.open = true // they are answered
	ib.superseded = append(ib.superseded, ib.unwritten...)
}

// awaitOpen waits until this execution owns the directory: nothing is journaled before.
func (ib *inbox) awaitOpen(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool { return ib.open })
}

// note remembers a message until the next write: it does not count if the directory is found newer. Of many, the last ones
// are forgotten.
func (ib *inbox) note(verb string, m contract.Message) {
	if verb != contract.VerbLook && len(ib.unwritten) < maxRefusedEvents {
		ib.unwritten = append(ib.unwritten, run.DecisionRefused{Verb: verb, Reason: "the run directory had later events", By: m.By})
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
func (ib *inbox) redacted(ctx workflow.Context, m contract.Message) (contract.Message, error) {
	if m.Note+m.Feedback+m.Reason+m.Text == "" && (m.Action == "" || run.KnownAction(m.Action)) {
		return m, nil
	}
	var out contract.Message
	err := workflow.SideEffect(ctx, func(workflow.Context) any { return m.Redacted(ib.redact) }).Get(&out)
	return out, err
}

// deferError keeps an error without a sender for the loop.
func (ib *inbox) deferError(err error) { ib.err = errors.Join(ib.err, err) }

// leavesLimit reports whether a message ends the wait for a limit.
func (ib *inbox) leavesLimit() bool {
	return ib.asked.Pause || ib.asked.Resume || ib.asked.Revert != nil || ib.err != nil
}

// now reports, once, whether an operator asks for the next call.
func (ib *inbox) now() bool {
	now := ib.tryNow
	ib.tryNow = false
	return now
}

// pausing describes a pause that was requested and has not begun.
func (ib *inbox) pausing() string {
	switch {
	case !ib.asked.Pause:
		return ""
	case ib.asked.Now:
		return "a pause is requested" + byWhom(ib.asked.PauseBy) + ": the running call is being ended"
	}
	return "a pause is requested" + byWhom(ib.asked.PauseBy) + ": it begins after the running pass; a resume cancels it"
}

func byWhom(name string) string {
	if name == "" {
		return ""
	}
	return " by " + run.OneLine(name)
}

func (ib *inbox) interruptsWait() bool {
	return ib.asked.Pause && ib.active() || ib.asked.Revert != nil || ib.err != nil || ib.state().Status.Closed()
}

// Refused signals are journaled one by one up to maxRefusedEvents, so that senders cannot fill a journal. Later
// ones are counted, and journaled per refusedPerEvent, when the run continues, and before continue-as-new.
const (
	maxRefusedEvents = 100
	refusedPerEvent  = 1000
)

// journalRefused journals or counts a refused signal.
func (ib *inbox) journalRefused(ctx workflow.Context, ev run.DecisionRefused) error {
	r := &ib.refusals
	if r.Journaled < maxRefusedEvents {
		r.Journaled++
		return ib.record(ctx, run.KindDecisionRefused, ev)
	}
	r.Counted, r.Last = r.Counted+1, ev
	if r.Counted < refusedPerEvent {
		return nil
	}
	return ib.journalRefusedCount(ctx)
}

// journalRefusedCount journals the number of refused signals since the last event.
func (ib *inbox) journalRefusedCount(ctx workflow.Context) error {
	r := &ib.refusals
	if r.Counted == 0 || ib.state().Status.Closed() {
		return nil
	}
	ev := r.Last
	ev.Count = r.Counted
	r.Counted, r.Last = 0, run.DecisionRefused{}
	return ib.record(ctx, run.KindDecisionRefused, ev)
}

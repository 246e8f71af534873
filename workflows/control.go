package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
)

// Names of the messages. Each is a signal and an Update; both end in control.apply.
const (
	VerbPause  = "pause"
	VerbResume = "resume"
	VerbBudget = "budget"
	VerbRehome = "rehome"
)

// Message is what a person sends. Its keys are lower-case because people type them.
type Message struct {
	By    string  `json:"by,omitempty"`
	Note  string  `json:"note,omitempty"`
	Now   bool    `json:"now,omitempty"`   // pause: do not wait for the running call, end it
	USD   float64 `json:"usd,omitempty"`   // budget: the new cap
	Force bool    `json:"force,omitempty"` // resume: although the same pass failed again and again; it needs a reason
	Dir   string  `json:"dir,omitempty"`   // rehome, resume: where the run directory is now: it may be moved while the run rests
	Queue string  `json:"queue,omitempty"` // rehome: the task queue of the host that the directory is on now

	To   string `json:"to,omitempty"`   // revert: the checkpoint, or a boundary like pass-35
	Rest bool   `json:"rest,omitempty"` // revert: stay paused there

	Action   string `json:"action,omitempty"`   // decide: continue, retry_feedback, continue_with_waiver or halt
	Feedback string `json:"feedback,omitempty"` // decide: the words that retry_feedback and continue_with_waiver need
	ID       string `json:"id,omitempty"`       // decide: of the hand-off; may be left out where one is open

	Reason string `json:"reason,omitempty"` // resume: of the force; it is recorded
}

// Ack is the answer to an Update.
type Ack struct {
	RunID  string     `json:"run_id"`
	Status run.Status `json:"status"`
	Said   string     `json:"said"`
}

// Control is what messages have asked for and the main loop has not acted on yet.
type Control struct {
	Pause   bool   `json:"pause,omitempty"`
	PauseBy string `json:"pause_by,omitempty"`
	Now     bool   `json:"now,omitempty"`
	Resume  bool   `json:"resume,omitempty"`
	By      string `json:"by,omitempty"`
	Note    string `json:"note,omitempty"`
	Force   bool   `json:"force,omitempty"`
	Reason  string `json:"reason,omitempty"` // of the force

	Revert *Reverting `json:"revert,omitempty"`
}

type control struct {
	e *engine
	Control
	dirty  bool  // an event waits for the directory
	failed error // what a message has written down could not be journaled, and nobody waits for an answer: the main loop fails the run
	tries  int   // how often an operator has asked for something that a full disk holds up: each time it is tried at once
	busy   int   // signals that are being acted on

	refusals Refusals
}

func descriptions() []struct{ verb, signal, update string } {
	return []struct{ verb, signal, update string }{
		{VerbPause, "Pause after the running pass. {\"now\":true} ends the running call instead.", "Pause; answers when it is noted."},
		{VerbResume, "Go on after a pause.", "Go on after a pause; refused while the cause is there."},
		{VerbDecide, "Decide the open hand-off: {\"action\":\"continue\"}.", "Decide the open hand-off; refused if it is not open, not this one, or decided otherwise."},
		{VerbRevert, "Take a paused run back to a checkpoint, and go on from there: {\"to\":\"cp-S3\"}.", "Take a paused run back to a checkpoint; refused unless it is paused."},
		{VerbBudget, "Set the budget: {\"usd\":500}.", "Set the budget; refused if it is not above what is spent."},
		{VerbRehome, "The directory of a run that rests was moved: {\"dir\":\"/new\",\"queue\":\"passbook-dir-HOST\"}.",
			"Say where the directory of a run that rests is now; refused while it is at work."},
	}
}

// listen registers the handlers. It must be called before the workflow yields for the first time.
func (c *control) listen(ctx workflow.Context) error {
	for _, d := range descriptions() {
		verb := d.verb
		handle := func(ctx workflow.Context, m Message) (Ack, error) {
			if err := c.awaitHost(ctx, verb); err != nil {
				return Ack{}, err
			}
			m, err := c.hidden(ctx, m)
			if err != nil {
				return Ack{}, err
			}
			ack, err := c.act(ctx, verb, m)
			if err != nil && wasReset(ctx) { // nobody waits for the answer to what a reset has brought back: the directory is told
				err = errors.Join(err, c.note(ctx, run.KindDecisionRefused, run.DecisionRefused{Verb: verb, Reason: err.Error(), By: m.By}))
			}
			return ack, err
		}
		opts := workflow.UpdateHandlerOptions{
			Description: d.update,
			Validator: func(_ workflow.Context, m Message) error {
				if m.unexplained(verb) {
					return errUnexplained()
				}
				return c.check(verb, m)
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
					return // cancelled: the end of the execution drains what is left
				}
				c.signalled(ctx, verb, raw)
			}
		})
	}
	return nil
}

// awaitOpen waits until the directory is this execution's: nothing is written down before.
func (c *control) awaitOpen(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool { return c.e.opened })
}

// awaitHost is awaitOpen for a message whose sender waits for the answer. A pause needs no directory: it is answered at once. Everything else is refused
// where no worker opens the directory.
func (c *control) awaitHost(ctx workflow.Context, verb string) error {
	if verb == VerbPause {
		return nil
	}
	ok, err := within(ctx, hostWait, "until the directory is open", func() bool { return c.e.opened || c.e.away })
	if err != nil || c.e.opened {
		return err
	}
	c.e.away = c.e.away || !ok // whoever asks next is told at once
	return refuse("the run directory %s is not open. %s", c.e.in.Target.Dir, startWorker(c.e.in.DirQueue))
}

// act does what a message asks for, if it still can.
func (c *control) act(ctx workflow.Context, verb string, m Message) (Ack, error) {
	if err := c.check(verb, m); err != nil { // what held when it was accepted may not hold any more
		return Ack{}, err
	}
	if m.unexplained(verb) && workflow.GetVersion(ctx, "force needs a reason", workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		return Ack{}, errUnexplained()
	}
	if c.moves(m) {
		if err := c.move(ctx, verb, m); err != nil {
			return Ack{}, err
		}
	}
	return c.apply(ctx, verb, m)
}

// unexplained says that a message forces something and does not say why. A note counts as a reason: earlier programs sent it so.
func (m Message) unexplained(verb string) bool {
	return verb == VerbResume && m.Force && strings.TrimSpace(m.Reason) == "" && strings.TrimSpace(m.Note) == ""
}

func errUnexplained() error {
	return refuse("force needs a reason, which is recorded ({\"force\":true,\"reason\":\"TEXT\"}, starter resume --force --reason TEXT)")
}

// drain takes the signals that have arrived and were not received: nothing sent is lost at the end of an execution.
func (c *control) drain(ctx workflow.Context) {
	for _, d := range descriptions() {
		ch := workflow.GetSignalChannel(ctx, d.verb)
		for raw := (converter.RawValue{}); ch.ReceiveAsync(&raw); raw = (converter.RawValue{}) {
			c.signalled(ctx, d.verb, raw)
		}
	}
}

// signalled acts on a signal. One that cannot be read or acted on is written down and ignored: it never fails the run.
func (c *control) signalled(ctx workflow.Context, verb string, raw converter.RawValue) {
	c.busy++
	defer func() { c.busy-- }()
	m, err := readMessage(raw)
	if err == nil {
		m, err = c.hidden(ctx, m)
	}
	if err == nil {
		_, err = c.act(ctx, verb, m)
	}
	if err != nil {
		c.fail(c.noteRefused(ctx, run.DecisionRefused{Verb: verb, Reason: err.Error(), By: m.By}))
	}
}

// maxMessage is how large a message may be, in bytes.
const maxMessage = 32 << 10

// maxWords is how long the words of a decision may be, in bytes of JSON: they travel with the state.
const maxWords = 8 << 10

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

// readMessage reads a signal's payload. Without one the message is empty: `temporal workflow signal --name pause` sends none.
func readMessage(raw converter.RawValue) (Message, error) {
	var m Message
	p := raw.Payload()
	switch size := len(p.GetData()); {
	case size > maxMessage:
		return m, refuse("the message has %d bytes; at most %d are taken", size, maxMessage)
	case size == 0:
		return m, nil
	}
	if err := converter.GetDefaultDataConverter().FromPayload(p, &m); err != nil {
		return Message{}, refuse("the message cannot be read, it should be like {\"note\":\"…\"}: %v", err)
	}
	return m, nil
}

// hidden hides the secrets in the words of a message, before they get into the journal. It is a side effect, so a replay has the same words whatever
// its worker takes for a secret.
func (c *control) hidden(ctx workflow.Context, m Message) (Message, error) {
	if m.Note == "" && m.Feedback == "" && m.Reason == "" && (m.Action == "" || known(m.Action)) {
		return m, nil
	}
	var out Message
	err := workflow.SideEffect(ctx, func(workflow.Context) any { return m.Hidden(c.e.hide) }).Get(&out)
	return out, err
}

// Hidden gives the message without the secrets in its words.
func (m Message) Hidden(hide func(string) string) Message {
	for _, words := range []*string{&m.By, &m.Note, &m.Feedback, &m.Reason} {
		*words = hide(*words)
	}
	if !known(m.Action) {
		m.Action = hide(m.Action)
	}
	return m
}

// note writes an event down and has it carried to the directory by the courier. What is not written down is not accepted either.
func (c *control) note(ctx workflow.Context, kind run.Kind, payload any) error {
	if err := c.e.j.emit(ctx, kind, c.e.j.state.Phase, payload); err != nil {
		return fmt.Errorf("journal %s: %w", kind, err)
	}
	c.dirty = true
	return nil
}

// fail keeps an error that has nobody to answer to for the main loop.
func (c *control) fail(err error) { c.failed = errors.Join(c.failed, err) }

// check says whether a message can be acted on now. It changes nothing.
func (c *control) check(verb string, m Message) error {
	s := c.e.j.state
	if size := len(m.By) + len(m.Note) + len(m.Dir) + len(m.Queue) + len(m.Feedback) + len(m.Action) + len(m.ID) + len(m.To) + len(m.Reason); size > maxMessage {
		return refuse("the message has %d bytes; at most %d are taken", size, maxMessage)
	}
	if s.Status.Closed() {
		return conflict(s, operationOf(verb), "the run is %s: nothing can be asked of it any more", s.Status)
	}
	if err := c.mayMove(verb, m); err != nil {
		return err
	}
	switch verb {
	case VerbPause:
		begun := s.Status != "" && s.Status != run.Unknown
		if err := run.May(s.Status, run.Pause, run.Terms{}); begun && err != nil {
			return conflict(s, run.Pause, "the run is %s: there is nothing to pause", s.Status)
		}
	case VerbResume:
		if s.Status != run.Paused && !c.Pause {
			return conflict(s, run.Resume, "the run is %s: only a paused run can be resumed", s.Status)
		}
		if c.Revert != nil {
			return refuse("the run goes back to %s at this moment, and goes on from there", c.Revert.To)
		}
		if s.Reason == run.BudgetThreshold && s.Budget.CapUSD > 0 && s.Total() >= s.Budget.CapUSD {
			return refuse("%.2f USD are spent and the budget is %.2f: raise it first (budget {\"usd\": N})", s.Total(), s.Budget.CapUSD)
		}
		if s.Reason == run.ConsecutiveFailures && !m.Force {
			return refuse("%s. Fix the cause, then resume with force ({\"force\":true,\"reason\":\"TEXT\"}, starter resume --force --reason TEXT)", repeated(s))
		}
	case VerbDecide:
		if size := encodedSize(m.Feedback, m.Note); size > maxWords {
			return refuse("feedback and note take %d bytes; at most %d are taken: put the rest into a file and name it", size, maxWords)
		}
		_, err := mayDecide(s, m)
		return err
	case VerbRevert:
		return c.mayRevert(m)
	case VerbRehome:
		return c.mayRehome(m)
	case VerbBudget:
		if !run.ValidBudget(m.USD) {
			return refuse("a budget of %g USD is not a number from 0 to %.0f", m.USD, run.MaxBudgetUSD)
		}
		if m.USD <= 0 || m.USD < s.Total() {
			return refuse("a budget of %.2f USD is below what is spent (%.2f)", m.USD, s.Total())
		}
	}
	return nil
}

// mayRehome wants a run that rests. A store that is a folder binds everything to its host.
func (c *control) mayRehome(m Message) error {
	in, s := c.e.in, c.e.j.state
	switch {
	case s.Status.Class() != run.OperatorPause:
		return refuse("the run is %s: its directory can be moved while it rests. Pause it first", s.Status)
	case m.Dir == "":
		return refuse("say where the directory is now ({\"dir\":\"/new\"})")
	case m.Queue != "" && m.Queue != in.DirQueue && strings.HasPrefix(in.Target.Store, "file:"):
		return refuse("its store %s is a folder of its host: the run stays there", in.Target.Store)
	}
	return nil
}

// repeated says what failed again and again.
func repeated(s run.State) string {
	if f := s.Failure; f != nil {
		return fmt.Sprintf("%s failed in %d starts, last with %s: %s", f.Step, f.Starts, f.Category, f.Message)
	}
	return fmt.Sprintf("%d passes in a row were given up", s.Passes.InRow)
}

// apply records what a message asks for and returns at once; the main loop acts at its next boundary.
func (c *control) apply(ctx workflow.Context, verb string, m Message) (Ack, error) {
	s := c.e.j.state
	switch verb {
	case VerbPause:
		c.Pause, c.PauseBy, c.Note, c.Now = true, m.By, m.Note, c.Now || m.Now
		if m.Now {
			c.e.endCalls()
		}
		return c.ack("pausing after the running pass"), nil
	case VerbResume:
		if s.Status != run.Paused {
			c.Control = Control{} // the pause had not begun
			return c.ack("not pausing"), nil
		}
		c.Resume, c.By, c.Note, c.Force, c.Reason, c.Pause, c.Now = true, m.By, m.Note, m.Force, m.Reason, false, false
		c.tries++
		return c.ack("resuming"), nil
	case VerbDecide:
		return c.decide(ctx, m)
	case VerbRevert:
		c.Revert = &Reverting{To: m.To, By: m.By, Note: m.Note, Rest: m.Rest}
		c.tries++
		return c.ack("going back to " + m.To), nil
	case VerbRehome:
		c.tries++
		return c.ack("its directory is " + c.e.in.Target.Dir), nil
	case VerbBudget:
		b := run.Budget{CapUSD: m.USD, WarnUSD: run.Cents(m.USD * c.e.warnShare())}
		if err := c.note(ctx, run.KindBudgetRaised, run.BudgetEvent{Budget: b, TotalUSD: s.Total(), By: m.By, Note: m.Note}); err != nil {
			return Ack{}, err
		}
		return c.ack(fmt.Sprintf("the budget is %.2f USD", m.USD)), nil
	}
	return Ack{}, refuse("unknown message %q", verb)
}

func (c *control) ack(said string) Ack {
	return Ack{RunID: c.e.in.Target.RunID, Status: c.e.j.state.Status, Said: said}
}

// courier carries what messages wrote down to the directory while the main loop waits for a pass.
func (c *control) courier(ctx workflow.Context) {
	workflow.GoNamed(ctx, "courier", func(ctx workflow.Context) {
		for workflow.Await(ctx, func() bool { return c.dirty && c.e.opened }) == nil {
			c.dirty = false
			if err := c.e.j.flush(ctx); err != nil { // what is pending stays so: the main loop writes it, or fails
				workflow.GetLogger(ctx).Error("a message waits for the directory", "error", err)
			}
		}
	})
}

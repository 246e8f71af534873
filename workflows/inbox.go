package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// message is a row of the table of messages. Each is a signal and an Update, with the same effect.
type message struct {
	verb           string
	signal, update string // descriptions for the Web UI and the Temporal CLI
	// validate reports why the message cannot be acted on now, in a run that is open. It changes nothing. nil: it always can.
	validate func(*control, contract.Message) error
	// apply records what the message requests and returns at once; the main loop acts at its next boundary.
	apply func(*control, workflow.Context, contract.Message) (contract.Ack, error)
}

// messages is the table. It is a function, because handlers use it too.
func messages(runID string) []message {
	return []message{
		{
			contract.VerbPause, "Pause after the running pass. {\"now\":true} cancels the running call instead.",
			"Pause; returns when the pause is recorded.", (*control).validatePause, (*control).pause,
		},
		{
			contract.VerbResume, "Resume a paused run.", "Resume a paused run; refused while the cause persists.",
			(*control).validateResume, (*control).resume,
		},
		{
			contract.VerbDecide, "Decide the open hand-off: {\"action\":\"continue\"}.",
			"Decide the open hand-off; refused if it is closed, has another id, or was decided differently.",
			(*control).validateDecide, (*control).decide,
		},
		{
			contract.VerbRevert, "Revert a paused run to a checkpoint and continue from there: {\"to\":\"cp-S3\"}.",
			"Revert a paused run to a checkpoint; refused unless it is paused.",
			(*control).validateRevert, (*control).revert,
		},
		{
			contract.VerbAmend, "Amend the definition; run \"starter amend " + shell.Quote(runID) + " --config FILE\".",
			"Amend the definition; refused if completed steps or the plan's structure differ.",
			(*control).validateAmend, (*control).amend,
		},
		{
			contract.VerbSteer, "Add an instruction to the next prompts: {\"text\":\"…\",\"role\":\"builder\"}. " +
				"{\"now\":true} interrupts the running call for it.",
			"Add an instruction to the next prompts; refused if the run has ended or has no such role.",
			(*control).validateSteer, (*control).steer,
		},
		{
			contract.VerbBudget, "Set the budget: {\"usd\":500}.", "Set the budget; refused if it is below the current cost.",
			(*control).validateBudget, (*control).setBudget,
		},
		{
			contract.VerbLook, "Compare the run directory with the workflow.",
			"Compare the run directory with the workflow; the next execution continues from one with later events.",
			nil, (*control).look,
		},
	}
}

// validate reports why a message cannot be acted on now.
func (c *control) validate(kind message, m contract.Message) error {
	if size := len(m.By) + len(m.Note) + len(m.Feedback) + len(m.Action) + len(m.ID) +
		len(m.To) + len(m.Reason) + len(m.Text) + len(m.Role); size > maxMessage {
		return refuse("the message has %d bytes; the maximum is %d", size, maxMessage)
	}
	if err := c.accepts(kind.verb); err != nil || kind.validate == nil {
		return err
	}
	return kind.validate(c, m)
}

// accepts refuses every message to a closed run.
func (c *control) accepts(verb string) error {
	switch s := c.e.j.state; {
	case s.Status == run.Done:
		return conflict(s, run.Operation(verb), contract.DoneIsFinal)
	case s.Status.Closed():
		return conflict(s, run.Operation(verb), "the run is %s: it accepts no more messages", s.Status)
	}
	return nil
}

func (c *control) validatePause(contract.Message) error {
	s := c.e.j.state
	begun := s.Status != "" && s.Status != run.Unknown
	if err := run.May(s.Status, run.Pause, run.Terms{}); begun && err != nil {
		return conflict(s, run.Pause, "the run is %s: there is nothing to pause", s.Status)
	}
	return nil
}

func (c *control) pause(_ workflow.Context, m contract.Message) (contract.Ack, error) {
	c.Pause, c.PauseBy, c.Note, c.Now = true, m.By, m.Note, c.Now || m.Now
	if c.e.j.state.Status == run.WaitingLimit {
		return c.ack("pausing"), nil
	}
	if m.Now {
		c.e.cancelCalls()
		return c.ack("ending the running call and pausing; resume repeats its pass"), nil
	}
	return c.ack("pausing after the running pass"), nil
}

func (c *control) validateResume(m contract.Message) error {
	s := c.e.j.state
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
	// A note counts as a reason: earlier releases sent it that way.
	if m.Force && strings.TrimSpace(m.Reason) == "" && strings.TrimSpace(m.Note) == "" {
		return refuse("force needs a reason, run: starter resume %s --force --reason TEXT", shell.Quote(c.runID()))
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

func (c *control) resume(_ workflow.Context, m contract.Message) (contract.Ack, error) {
	limited := c.e.j.state.Status == run.WaitingLimit
	if c.e.j.state.Status != run.Paused && c.Pause {
		c.Control = contract.Control{} // the pause had not begun
		return c.ack("pause cancelled"), nil
	}
	c.Resume, c.By, c.Note, c.Force, c.Reason, c.Pause, c.Now = true, m.By, m.Note, m.Force, m.Reason, false, false
	c.retryRequests++
	if limited {
		return c.ack("trying at once"), nil
	}
	return c.ack("resuming"), nil
}

func (c *control) validateDecide(m contract.Message) error {
	if size := encodedSize(m.Feedback, m.Note); size > maxFeedback {
		return refuse("feedback and note have %d bytes; the maximum is %d: put the rest into a file and name the file",
			size, maxFeedback)
	}
	_, err := validateDecision(c.e.j.state, m)
	return err
}

func (c *control) revert(_ workflow.Context, m contract.Message) (contract.Ack, error) {
	c.Revert = &contract.PendingRevert{To: m.To, By: m.By, Note: m.Note, StayPaused: m.StayPaused}
	c.retryRequests++
	return c.ack("reverting to " + m.To), nil
}

func (c *control) look(workflow.Context, contract.Message) (contract.Ack, error) {
	c.looks++
	for _, id := range workflow.DeterministicKeys(c.e.children) {
		c.e.children[id].changed = true
	}
	return c.ack("the workflow has every event of the directory"), nil
}

func (c *control) setBudget(ctx workflow.Context, m contract.Message) (contract.Ack, error) {
	s := c.e.j.state
	if err := c.record(ctx, run.KindBudgetRaised, run.BudgetEvent{
		Budget: changedBudget(m, s.Budget, c.e.budgetWarnShare()), TotalUSD: s.Total(), By: m.By, Note: m.Note,
	}); err != nil {
		return contract.Ack{}, err
	}
	text := "the budget is " + budgetText(m)
	if now := c.e.j.state; now.Status == run.Paused && now.Reason == run.BudgetThreshold && now.BudgetShort() {
		text += ", and too small to continue: " + now.BudgetWords()
	}
	return c.ack(text), nil
}

func (c *control) ack(text string) contract.Ack {
	return contract.Ack{RunID: c.e.in.Target.RunID, Status: c.e.j.state.Status, Message: text}
}

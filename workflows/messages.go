package workflows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// validateBudget requires budgets that are not spent.
func (hs *handlers) validateBudget(m contract.Message) error {
	s := hs.state()
	switch at, err := time.Parse(time.RFC3339, m.Deadline); {
	case !run.ValidBudget(m.USD):
		return refuse("a budget of %g USD is not a number from 0 to %.0f", m.USD, run.MaxBudgetUSD)
	case m.USD < 0 || m.USD > 0 && m.USD < s.Total() || m.USD == 0 && m.BudgetLimits == (contract.BudgetLimits{}):
		return refuse("a budget of %.2f USD is below the current cost (%.2f)", m.USD, s.Total())
	case m.Deadline != "" && err != nil:
		return refuse("the deadline %q is not a time: write it as in 2026-11-25T18:00:00Z", m.Deadline)
	case m.Tokens < 0 || m.Calls < 0 || !(m.Hours >= 0):
		return refuse("a budget is negative: send numbers above 0")
	case m.Deadline != "" && run.Time(at) <= s.TS:
		return refuse("the deadline %s has passed", m.Deadline)
	}
	next := s
	next.Budget = run.Budget{Tokens: m.Tokens, Calls: m.Calls, Hours: m.Hours}
	if use, spent := next.SpentBudget(""); spent {
		return refuse("the budget would be spent: %s", use.Text)
	}
	return nil
}

// message is a row of the table of messages. Each is a signal and an Update, with the same effect.
type message struct {
	verb           string
	signal, update string // descriptions for the Web UI and the Temporal CLI
	// validate reports why the message cannot be acted on now, in a run that is open. It changes nothing. nil: it always can.
	validate func(*handlers, contract.Message) error
	// apply records what the message requests and returns at once; the loop acts at its next boundary.
	apply func(*handlers, workflow.Context, contract.Message) (contract.Ack, error)
}

// messages is the table. It is a function, because handlers use it too.
func messages(runID string) []message {
	return []message{
		{
			contract.VerbPause, "Pause after the running pass. {\"now\":true} cancels the running call instead.",
			"Pause; returns when the pause is recorded.", (*handlers).validatePause, (*handlers).pause,
		},
		{
			contract.VerbResume, "Resume a paused run.", "Resume a paused run; refused while the cause persists.",
			(*handlers).validateResume, (*handlers).resume,
		},
		{
			contract.VerbDecide, "Decide the open hand-off: {\"action\":\"continue\"}.",
			"Decide the open hand-off; refused if it is closed, has another id, or was decided differently.",
			(*handlers).validateDecide, (*handlers).decide,
		},
		{
			contract.VerbRevert, "Revert a paused run to a checkpoint and continue from there: {\"to\":\"cp-S3\"}.",
			"Revert a paused run to a checkpoint; refused unless it is paused.",
			(*handlers).validateRevert, (*handlers).revert,
		},
		{
			contract.VerbAmend, "Amend the definition; run \"starter amend " + shell.Quote(runID) + " --config FILE\".",
			"Amend the definition; refused if completed steps or the plan's structure differ.",
			(*handlers).validateAmend, (*handlers).amend,
		},
		{
			contract.VerbSteer, "Add an instruction to the next prompts: {\"text\":\"…\",\"role\":\"builder\"}. " +
				"{\"now\":true} interrupts the running call for it.",
			"Add an instruction to the next prompts; refused if the run has ended or has no such role.",
			(*handlers).validateSteer, (*handlers).steer,
		},
		{
			contract.VerbBudget, "Set the budget: {\"usd\":500}.", "Set the budget; refused if it is below the current cost.",
			(*handlers).validateBudget, (*handlers).setBudget,
		},
		{
			contract.VerbLook, "Compare the run directory with the workflow.",
			"Compare the run directory with the workflow; the next execution continues from one with later events.",
			nil, (*handlers).look,
		},
	}
}

// validate reports why a message cannot be acted on now.
func (hs *handlers) validate(kind message, m contract.Message) error {
	if size := len(m.By) + len(m.Note) + len(m.Feedback) + len(m.Action) + len(m.ID) +
		len(m.To) + len(m.Reason) + len(m.Text) + len(m.Role); size > maxMessage {
		return refuse("the message has %d bytes; the maximum is %d", size, maxMessage)
	}
	if err := hs.accepts(kind.verb); err != nil || kind.validate == nil {
		return err
	}
	return kind.validate(hs, m)
}

// accepts refuses every message to a closed run.
func (hs *handlers) accepts(verb string) error {
	switch s := hs.state(); {
	case s.Status == run.Done:
		return conflict(s, run.Operation(verb), contract.DoneIsFinal)
	case s.Status.Closed():
		return conflict(s, run.Operation(verb), "the run is %s: it accepts no more messages", s.Status)
	}
	return nil
}

func (hs *handlers) validatePause(contract.Message) error {
	s := hs.state()
	begun := s.Status != "" && s.Status != run.Unknown
	if err := run.May(s.Status, run.Pause, run.Terms{}); begun && err != nil {
		return conflict(s, run.Pause, "the run is %s: there is nothing to pause", s.Status)
	}
	return nil
}

func (hs *handlers) pause(_ workflow.Context, m contract.Message) (contract.Ack, error) {
	hs.asked.Pause, hs.asked.PauseBy, hs.asked.Note, hs.asked.Now = true, m.By, m.Note, hs.asked.Now || m.Now
	if hs.state().Status == run.WaitingLimit {
		return hs.ack("pausing"), nil
	}
	if m.Now {
		hs.running.cancel(func(*call) bool { return true })
		return hs.ack("ending the running call and pausing; resume repeats its pass"), nil
	}
	return hs.ack("pausing after the running pass"), nil
}

func (hs *handlers) validateResume(m contract.Message) error {
	s := hs.state()
	if s.Status != run.Paused && s.Status != run.WaitingLimit && !hs.asked.Pause {
		instead := ""
		if _, open := s.Asks(); open {
			instead = "; answer its question (starter decide)"
		}
		return conflict(s, run.Resume, "the run is %s: only a paused run can be resumed%s", s.Status, instead)
	}
	if hs.asked.Revert != nil {
		return unmet("the run is being reverted to %s and continues from there", hs.asked.Revert.To)
	}
	if s.Reason == run.BudgetThreshold && s.BudgetShort() {
		why := fmt.Sprintf("the run has cost %.2f USD of a budget of %.2f USD", s.Total(), s.Budget.CapUSD)
		if use, spent := s.SpentBudget(""); s.Need != nil || spent && use.Name != run.BudgetUSD {
			why = s.BudgetWords()
		}
		name, value := s.Raise()
		return unmet("%s: raise the budget first, run: %s", why,
			shell.Line("starter", "budget", hs.runID(), "--"+name, value))
	}
	if s.Reason == run.ConsecutiveFailures && !m.Force {
		return unmet("%s. Fix the cause, then run: starter resume %s --force --reason TEXT", repeatedFailure(s),
			shell.Quote(hs.runID()))
	}
	// A note counts as a reason: earlier releases sent it that way.
	if m.Force && strings.TrimSpace(m.Reason) == "" && strings.TrimSpace(m.Note) == "" {
		return refuse("force needs a reason, run: starter resume %s --force --reason TEXT", shell.Quote(hs.runID()))
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

func (hs *handlers) resume(_ workflow.Context, m contract.Message) (contract.Ack, error) {
	limited := hs.state().Status == run.WaitingLimit
	if hs.state().Status != run.Paused && hs.asked.Pause {
		hs.asked = contract.Control{} // the pause had not begun
		return hs.ack("pause cancelled"), nil
	}
	c := &hs.asked
	c.Resume, c.By, c.Note, c.Force, c.Reason, c.Pause, c.Now = true, m.By, m.Note, m.Force, m.Reason, false, false
	hs.requests++
	if limited {
		return hs.ack("trying at once"), nil
	}
	return hs.ack("resuming"), nil
}

func (hs *handlers) validateDecide(m contract.Message) error {
	if size := encodedSize(m.Feedback, m.Note); size > maxFeedback {
		return refuse("feedback and note have %d bytes; the maximum is %d: put the rest into a file and name the file",
			size, maxFeedback)
	}
	_, err := validateDecision(hs.state(), m)
	return err
}

func (hs *handlers) decide(ctx workflow.Context, m contract.Message) (contract.Ack, error) {
	return hs.questions.decide(ctx, m)
}

func (hs *handlers) revert(_ workflow.Context, m contract.Message) (contract.Ack, error) {
	hs.asked.Revert = &contract.PendingRevert{To: m.To, By: m.By, Note: m.Note, StayPaused: m.StayPaused}
	hs.requests++
	return hs.ack("reverting to " + m.To), nil
}

func (hs *handlers) look(workflow.Context, contract.Message) (contract.Ack, error) {
	hs.journal.lookSoon()
	hs.children.readAgain()
	return hs.ack("the workflow has every event of the directory"), nil
}

func (hs *handlers) setBudget(ctx workflow.Context, m contract.Message) (contract.Ack, error) {
	s := hs.state()
	if err := hs.record(ctx, run.KindBudgetRaised, run.BudgetEvent{
		Budget: changedBudget(m, s.Budget, hs.budgetWarnShare()), TotalUSD: s.Total(), By: m.By, Note: m.Note,
	}); err != nil {
		return contract.Ack{}, err
	}
	text := "the budget is " + budgetText(m)
	if now := hs.state(); now.Status == run.Paused && now.Reason == run.BudgetThreshold && now.BudgetShort() {
		text += ", and too small to continue: " + now.BudgetWords()
	}
	return hs.ack(text), nil
}

// validateRevert checks the preconditions of a revert.
func (hs *handlers) validateRevert(m contract.Message) error {
	s := hs.state()
	switch {
	case hs.in.Start.Lane != nil:
		return refuse("a lane is not reverted: revert its run, %s", shell.Quote(hs.in.Start.Lane.RunID))
	case m.To == "":
		return refuse(`the checkpoint is missing: send {"to":"cp-S3"}; run "starter checkpoints %s" to list them`,
			shell.Quote(hs.runID()))
	case hs.asked.Revert != nil && hs.asked.Revert.To == m.To:
		return nil
	case hs.asked.Revert != nil:
		return unmet("the run is already being reverted to %s", hs.asked.Revert.To)
	case hs.asked.Resume:
		return unmet("the run is resuming: pause it first")
	}
	_, open := s.Asks()
	if err := run.May(s.Status, run.Revert, run.Terms{Undecided: open}); err != nil {
		return conflict(s, run.Revert, "%v. Pause it first", err)
	}
	return nil
}

// validateSteer requires an instruction for a role that the plan has.
func (hs *handlers) validateSteer(m contract.Message) error {
	s := hs.state()
	switch _, err := run.ParseInstruction(m.Text); {
	case strings.TrimSpace(m.Text) == "":
		return refuse(`the instruction is empty: send {"text":"…"}`)
	case err != nil:
		return refuse("%v", err)
	case s.SteeringFull():
		return unmet("%d instructions wait for their prompts, which is the maximum: send this one when a prompt has used "+
			"one of them", run.MaxInstructions)
	}
	if roles := hs.in.Start.RolesFrom(s.Next.Stage); m.Role != "" && len(roles) > 0 && !slices.Contains(roles, m.Role) {
		return refuse("the pipeline has no role %q from here on; its roles are %s", m.Role, strings.Join(roles, ", "))
	}
	return nil
}

// steer records an instruction. With now the running calls are interrupted, and their steps begin again with it.
func (hs *handlers) steer(ctx workflow.Context, m contract.Message) (contract.Ack, error) {
	now := m.Now && hs.running.interrupts(m.Role)
	ev := run.RunSteered{
		Role: m.Role, Text: strings.TrimSpace(m.Text), By: m.By, Note: m.Note, Now: now,
	}
	if err := hs.record(ctx, run.KindRunSteered, ev); err != nil {
		return contract.Ack{}, err
	}
	hs.children.tellLanes(ctx, contract.VerbSteer, contract.Message{Text: m.Text, Role: m.Role, Now: m.Now})
	switch {
	case now:
		// others begin next, and see the instruction then
		hs.running.cancel(func(c *call) bool { return c.interruptible(m.Role) })
		return hs.ack("interrupting the running call, which continues with the instruction"), nil
	case m.Now:
		return hs.ack("no call is running; the next prompt contains the instruction"), nil
	}
	return hs.ack("the next prompt contains the instruction"), nil
}

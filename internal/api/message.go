package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Answer is what a run answered.
type Answer struct {
	RunID           string `json:"run_id"`
	Directory       string `json:"directory"`
	run.ShownStatus        // as the directory recorded it when the operation returned
	Message         string `json:"message" jsonschema:"what the run answered, for people"`
}

// PauseInput is the input of [Pause].
type PauseInput struct {
	Run  string `json:"run" jsonschema:"id of the run, the beginning of one, or its directory"`
	Now  bool   `json:"now,omitempty" jsonschema:"end the running call instead of waiting for it; resume repeats its pass"`
	Note string `json:"note,omitempty" jsonschema:"a note for the journal"`
}

// Pause pauses a run after its current call.
func Pause(ctx context.Context, h Host, in PauseInput) (Answer, error) {
	return message(ctx, h, in.Run, contract.VerbPause, contract.Message{Now: in.Now, Note: in.Note})
}

// BudgetInput is the input of [Budget]. At least one limit is needed; zero keeps a limit as it is.
type BudgetInput struct {
	Run      string  `json:"run" jsonschema:"id of the run, the beginning of one, or its directory"`
	USD      float64 `json:"usd,omitempty" jsonschema:"USD that the run may cost in total, above what it has cost"`
	Tokens   int64   `json:"tokens,omitempty" jsonschema:"tokens of all kinds that the run may use"`
	Calls    int     `json:"calls,omitempty" jsonschema:"calls of agents that the run may make"`
	Hours    float64 `json:"hours,omitempty" jsonschema:"hours that the run may work, without pauses and questions"`
	Deadline string  `json:"deadline,omitempty" jsonschema:"time after which it makes no call, as in 2026-11-25T18:00:00Z"`
	Note     string  `json:"note,omitempty" jsonschema:"a note for the journal"`
}

// Budget sets budgets of an open run.
func Budget(ctx context.Context, h Host, in BudgetInput) (Answer, error) {
	limits := contract.BudgetLimits{Tokens: in.Tokens, Calls: in.Calls, Hours: in.Hours}
	if in.Deadline != "" {
		at, err := pipeline.ParseDeadline(in.Deadline)
		if err != nil {
			return Answer{}, invalid("%s: %w", h.flag("deadline"), err)
		}
		limits.Deadline = at.Format(time.RFC3339)
	}
	if in.Tokens < 0 || in.Calls < 0 || !(in.Hours >= 0) {
		return Answer{}, invalid("%s, %s and %s must be above 0", h.flag("tokens"), h.flag("calls"), h.flag("hours"))
	}
	if only := in.USD == 0 && limits != (contract.BudgetLimits{}); !only && (in.USD == 0 || !run.ValidBudget(in.USD)) {
		return Answer{}, invalid("%s is %g; it must be above 0 and at most %.0f, such as 500; or set another limit: %s, %s, "+
			"%s or %s", h.flag("usd"), in.USD, run.MaxBudgetUSD, h.flag("tokens"), h.flag("calls"), h.flag("hours"),
			h.flag("deadline"))
	}
	return message(ctx, h, in.Run, contract.VerbBudget,
		contract.Message{USD: in.USD, BudgetLimits: limits, Note: in.Note})
}

// SteerInput is the input of [Steer].
type SteerInput struct {
	Run  string `json:"run" jsonschema:"id of the run, the beginning of one, or its directory"`
	Text string `json:"text" jsonschema:"the instruction"`
	Role string `json:"role,omitempty" jsonschema:"the role whose next prompt contains it; empty: every role"`
	Now  bool   `json:"now,omitempty" jsonschema:"interrupt the running call"`
	Note string `json:"note,omitempty" jsonschema:"a note for the journal"`
}

// Steer adds an instruction to the next prompts of an open run.
func Steer(ctx context.Context, h Host, in SteerInput) (Answer, error) {
	text, err := run.ParseInstruction(in.Text)
	if err != nil {
		return Answer{}, &InputError{err}
	}
	return message(ctx, h, in.Run, contract.VerbSteer,
		contract.Message{Text: text, Role: in.Role, Now: in.Now, Note: in.Note})
}

// message sends a message to an open run.
func message(ctx context.Context, h Host, name, verb string, m contract.Message) (Answer, error) {
	d, claim, err := h.atHome(name)
	if err != nil {
		return Answer{}, err
	}
	return connected(ctx, h, func(o operations.Operator) (Answer, error) {
		text, err := h.speak(ctx, o, d, claim, verb, m)
		if err != nil {
			return Answer{}, err
		}
		return h.answer(d, claim.RunID, text), nil
	})
}

// answer is an answer with the status that the directory records now.
func (h Host) answer(d rundir.Dir, runID, text string) Answer {
	a := Answer{RunID: runID, Directory: d.Root, ShownStatus: run.Unknown.Shown(), Message: text}
	if m, err := d.Meta(); err == nil { // it may be replaced at this moment
		a.ShownStatus = run.Status(m.Status).Shown()
	}
	return a
}

// speak sends a message to an open run and returns the answer. After a resume it returns when the directory records it.
func (h Host) speak(ctx context.Context, o operations.Operator, d rundir.Dir, claim run.Claim, verb string,
	m contract.Message) (string, error) {
	trusted := operations.MayExecute(ctx, d, claim)
	var unknown *operations.UnknownRunError
	// An answer to a copy would reach the run of another directory; a resume executes the plan there.
	copied := errors.As(trusted, &unknown) && unknown.Place != ""
	if trusted != nil && (copied || verb == contract.VerbResume || verb == contract.VerbAmend) {
		return "", trusted
	}
	before, err := d.Meta()
	if err != nil {
		before = rundir.Meta{} // the directory follows as soon as it can be read
	}
	ack, err := o.SendUpdate(ctx, d, verb, m)
	if err != nil {
		return h.alreadyRunning(d, verb, err)
	}
	if trusted == nil { // the directory is that of the workflow
		if err := operations.Index(h.Settings.StateDir, claim.RunID, d.Root); err != nil {
			return "", err
		}
	}
	text := fmt.Sprintf("Run %s: %s.", claim.RunID, ack.Message)
	if verb != contract.VerbResume || ack.Status != run.Paused {
		return text, nil
	}
	held, err := h.recorded(ctx, o, d, func(m rundir.Meta) bool {
		return m.State.Starts > before.State.Starts || m.State.Status != run.Paused && m.Events.Seq > before.Events.Seq
	})
	if err != nil {
		return text, err
	}
	lines := []string{text}
	if held != "" {
		lines = append(lines, held)
	}
	now, err := d.Now()
	if err != nil {
		return strings.Join(lines, "\n"), err
	}
	return strings.Join(append(lines, h.DamageLines(d, now.State)...), "\n"), nil
}

// alreadyRunning returns a hint instead of the error if the run that is to be resumed is running.
func (h Host) alreadyRunning(d rundir.Dir, verb string, err error) (string, error) {
	var refused *operations.RefusedError
	m, unread := d.Meta()
	if verb != contract.VerbResume || !errors.As(err, &refused) || refused.FailedPrecondition || unread != nil || m.State.Status != run.Running {
		return "", err
	}
	for _, p := range d.Projects(m.State) {
		if p.Paused() {
			return fmt.Sprintf("Run %s is running. To resume its project %s: %s resume %s", m.RunID, p.Alias, h.Program,
				shell.Quote(p.Directory)), nil
		}
	}
	return fmt.Sprintf("Run %s is running: there is nothing to resume. To watch it: %s watch %s",
		m.RunID, h.Program, shell.Quote(d.Root)), nil
}

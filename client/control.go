package client

import (
	"context"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// PauseOptions are the options of [Client.Pause].
type PauseOptions struct {
	Now  bool   // end the running call instead of waiting for it
	Note string // recorded in the journal
}

// Pause pauses a run after its current call. It returns when the run has accepted the pause, which may be before the
// call ends; [Client.Wait] waits for the status [run.Paused].
//
// Errors: [*NameError], [*run.ConflictError], [*RefusedError], [*DirectoryError].
func (c *Client) Pause(ctx context.Context, name string, o PauseOptions) error {
	return c.send(ctx, name, contract.VerbPause, contract.Message{Now: o.Now, Note: o.Note})
}

// SetBudget sets the budget of an open run in USD, which must exceed what the run has spent. 0: no limit.
//
// Errors: [*NameError], [*run.ConflictError], [*RefusedError], [*PolicyError], [*DirectoryError].
func (c *Client) SetBudget(ctx context.Context, name string, usd float64) error {
	return c.send(ctx, name, contract.VerbBudget, contract.Message{USD: usd})
}

// Instruction is a text for the next prompts of a run.
type Instruction struct {
	Text string // at most [run.MaxInstruction] bytes of JSON
	Role string // whose next prompt contains it; empty: that of every role
	Now  bool   // interrupt the running calls; agents with sessions continue theirs with the text
	Note string // recorded in the journal
}

// Steer adds an instruction to the next prompts of an open run. It returns when the journal contains the instruction.
//
// Errors: [*NameError], [*run.ConflictError], [*RefusedError], [*DirectoryError].
func (c *Client) Steer(ctx context.Context, name string, i Instruction) error {
	return c.send(ctx, name, contract.VerbSteer,
		contract.Message{Text: i.Text, Role: i.Role, Now: i.Now, Note: i.Note})
}

func (c *Client) send(ctx context.Context, name, verb string, m contract.Message) error {
	dir, err := c.find(name)
	if err != nil {
		return public(err)
	}
	_, err = c.op.SendUpdate(ctx, dir, verb, m)
	return public(err)
}

// ResumeOptions are the options of [Client.Resume].
type ResumeOptions struct {
	Note   string // recorded in the journal
	Force  bool   // resume a halted run, one that differs from today's policy, or one of a lost host; the policy may forbid it
	Reason string // of Force, which requires one; recorded in the journal
}

// Resumed is where a run continues.
type Resumed struct {
	RunID      string
	Epoch      int        // increases when a closed run continues
	From       run.Status // before it was resumed
	Overridden []string   // differences between the run and the policy that Force overrides
}

// Resume continues a paused run, or a failed, cancelled or interrupted one in a new epoch from its last checkpoint. A
// paused run whose directory was moved continues there in a new epoch; other messages to it are refused. If several
// callers resume a run at once, one wins.
//
// Errors: [*NameError], [*run.ConflictError], [*RefusedError], [*PolicyError], [*DirectoryError].
func (c *Client) Resume(ctx context.Context, name string, o ResumeOptions) (Resumed, error) {
	dir, err := c.find(name)
	if err != nil {
		return Resumed{}, public(err)
	}
	r, err := c.op.Resume(ctx, dir,
		operations.Reopening{Force: o.Force, Reason: o.Reason, Note: o.Note})
	if err != nil {
		return Resumed{}, public(err)
	}
	return *resumed(&r), nil
}

func resumed(r *operations.Reopened) *Resumed {
	if r == nil {
		return nil
	}
	return &Resumed{RunID: r.RunID, Epoch: r.Epoch, From: r.From, Overridden: r.Overruled}
}

// Cancel ends a run: it ends the running call and writes the end to the journal. A cancelled run can be resumed. A run
// that was already cancelled stays unchanged. A run whose directory was deleted is named by its id.
//
// Errors: [*NameError], [*run.ConflictError], [*RefusedError], [*DirectoryError].
func (c *Client) Cancel(ctx context.Context, name string) error {
	dir, err := operations.FindHere(c.op.Settings.StateDir, name, false)
	if id, lost := operations.WithoutDirectory(name, err); lost {
		return public(c.op.CancelID(ctx, id, err))
	}
	if err != nil {
		return public(err)
	}
	return public(c.op.Cancel(ctx, dir))
}

// Decision answers the open question of a run.
type Decision struct {
	// Action is one of [run.Question.Actions], such as [run.ActionContinue].
	Action string

	// Feedback is required by some actions, such as [run.ActionRetryFeedback]; see [run.NeedsFeedback].
	Feedback string

	// Question is the id of the question. Empty: the open one. With an id, a decision never answers a later question.
	Question string

	// Note is recorded in the journal.
	Note string
}

// Decided is the result of [Client.Decide].
type Decided struct {
	Answer  string   // of the run, for people
	Resumed *Resumed // the decision opened a new epoch of a failed or interrupted run; nil: it did not
}

// Decide answers the open question of a run: a hand-off, a gate, a review or a delivery. If two operators decide at
// once, the first decision wins and the second gets a [*RefusedError].
//
// Errors: [*NameError], [*run.ConflictError], [*RefusedError], [*PolicyError], [*DirectoryError].
func (c *Client) Decide(ctx context.Context, name string, d Decision) (Decided, error) {
	dir, err := c.find(name)
	if err != nil {
		return Decided{}, public(err)
	}
	out, err := c.op.Decide(ctx, dir, contract.Message{
		Action: d.Action, Feedback: d.Feedback, ID: d.Question, Note: d.Note,
	})
	if err != nil {
		return Decided{}, public(err)
	}
	return Decided{Answer: out.Said, Resumed: resumed(out.Reopened)}, nil
}

package api

import (
	"cmp"
	"context"
	"fmt"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// DecideInput is the input of [Decide].
type DecideInput struct {
	Run      string `json:"run" jsonschema:"id of the run, the beginning of one, or its directory"`
	Action   string `json:"action" jsonschema:"one of the actions of the open question"`
	Feedback string `json:"feedback,omitempty" jsonschema:"the feedback that retry_feedback and continue_with_waiver need"`
	Question string `json:"question,omitempty" jsonschema:"id of the question, so that no other question is answered"`
	By       string `json:"by,omitempty" jsonschema:"who decides; empty: the user of this program"`
	Note     string `json:"note,omitempty" jsonschema:"a note for the journal"`
}

// Decide answers the open question of a run.
func Decide(ctx context.Context, h Host, in DecideInput) (Answer, error) {
	d, err := h.find(in.Run)
	if err != nil {
		return Answer{}, err
	}
	now, err := d.Now()
	if err != nil {
		return Answer{}, err
	}
	asked, _ := now.State.Asks()
	return connected(ctx, h, func(o operations.Operator) (Answer, error) {
		made, err := o.Decide(ctx, d, contract.Message{Action: in.Action, Feedback: in.Feedback, ID: in.Question,
			By: in.By, Note: in.Note})
		if err != nil {
			return Answer{}, err
		}
		text := fmt.Sprintf("Run %s: %s.", now.State.RunID, made.Said)
		if re := made.Reopened; re != nil && re.Epoch > 0 {
			text += fmt.Sprintf("\n%sIt was %s and continues in epoch %d.", ReopenedWith(*re), re.From, re.Epoch)
		}
		decided := func(m rundir.Meta) bool {
			q, open := m.State.Asks()
			return !open || q.ID != cmp.Or(in.Question, asked.ID)
		}
		held, err := h.recorded(ctx, o, d, decided)
		if m, unread := d.Meta(); err == nil && (unread != nil || !decided(m)) {
			text += "\n" + h.unrecorded("the decision", d, held)
		}
		return h.answer(d, now.State.RunID, text), err
	})
}

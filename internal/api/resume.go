package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// ResumeInput is the input of [Resume].
type ResumeInput struct {
	Run    string `json:"run" jsonschema:"id of the run, the beginning of one, or its directory"`
	Now    bool   `json:"now,omitempty" jsonschema:"try at once instead of waiting for a usage limit to reset"`
	Force  bool   `json:"force,omitempty" jsonschema:"resume a failed run, or despite repeated failures or a halt; needs a reason"`
	Reason string `json:"reason,omitempty" jsonschema:"the reason for force, which is recorded"`
	Note   string `json:"note,omitempty" jsonschema:"a note for the journal"`
	Yes    bool   `json:"-"` // at a terminal, after the cause of a failed run was shown
}

// MayResume checks what can be checked before a server is started. It returns the directory of the run.
func MayResume(h Host, in ResumeInput) (rundir.Dir, run.Claim, error) {
	d, claim, err := h.atHome(in.Run)
	if err == nil {
		err = h.explained(in.Force, in.Reason)
	}
	if err == nil {
		err = writableHere(d, claim)
	}
	return d, claim, err
}

// Resume continues a paused run, or a closed one in a new epoch. The answer may have a message beside an error.
func Resume(ctx context.Context, h Host, in ResumeInput) (Answer, error) {
	d, claim, err := MayResume(h, in)
	if err != nil {
		return Answer{}, err
	}
	return connected(ctx, h, func(o operations.Operator) (Answer, error) {
		text, err := h.resume(ctx, o, d, claim, in)
		return h.answer(d, claim.RunID, text), err
	})
}

func (h Host) resume(
	ctx context.Context, o operations.Operator, d rundir.Dir, claim run.Claim, in ResumeInput,
) (string, error) {
	open, err := o.Open(ctx, claim.RunID)
	if err != nil {
		return "", err
	}
	if open {
		text, err := h.speak(ctx, o, d, claim, contract.VerbResume,
			contract.Message{Note: in.Note, Force: in.Force, Reason: in.Reason})
		if !o.Reopens(ctx, claim.RunID, err) {
			return text, err
		}
	}
	return reopened(ctx, o, d, operations.Reopening{Force: in.Force, Reason: in.Reason, Note: in.Note, Now: in.Now,
		Yes: in.Yes})
}

// explained refuses force without a reason, before a server is started.
func (h Host) explained(force bool, reason string) error {
	if force && strings.TrimSpace(reason) == "" {
		return invalid("%s needs %s, which is recorded", h.flag("force"), h.flag("reason"))
	}
	return nil
}

// writableHere refuses a directory that this user cannot write, if this machine will write it. An open run elsewhere
// only gets a message.
func writableHere(d rundir.Dir, claim run.Claim) error {
	m, err := d.Meta()
	if claim.Embedded || err == nil && run.Status(m.Status).Closed() {
		return rundir.MayWrite(d)
	}
	return nil
}

// reopened opens the next epoch of a run and waits until its directory records it.
func reopened(ctx context.Context, o operations.Operator, d rundir.Dir, r operations.Reopening) (string, error) {
	re, err := o.Reopen(ctx, d, r)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("Run %s was %s and continues in epoch %d.", re.RunID, re.From, re.Epoch)
	if re.Restored > 0 {
		text = fmt.Sprintf("Restored %s of the store from the directory.\n", run.Plural(re.Restored, "file")) + text
	}
	return ReopenedWith(re) + text,
		AwaitDirectory(ctx, d, func(m rundir.Meta) bool { return m.Epoch >= re.Epoch })
}

// ReopenedWith lists what a new epoch repaired and overruled, a line for each.
func ReopenedWith(re operations.Reopened) string {
	text := ""
	for _, what := range re.Repaired {
		text += fmt.Sprintf("Warning: the journal was damaged and was restored: %s\n", what)
	}
	for _, what := range re.Left {
		text += fmt.Sprintf("Warning: %s\n", what)
	}
	for _, what := range re.Overruled {
		text += fmt.Sprintf("Overruled with force, and recorded: %s\n", what)
	}
	return text
}

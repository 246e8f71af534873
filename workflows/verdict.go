package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// Changes of this code that an execution follows unless its history was made without them.
const (
	changeApproval = "only what is approved is delivered without a question" // before: all that was not rejected
	changeAccepted = "a plan that was accepted is not reviewed again"
)

// follows reports whether an execution follows a change of this code.
func follows(ctx workflow.Context, change string) bool {
	return workflow.GetVersion(ctx, change, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// approved reports whether a pass of a role that gives verdicts approves the work; nil: its role gives none. A member of a group approves only if no
// other member disapproves.
func (p *pass) approved() *bool {
	if !p.role.Judges {
		return nil
	}
	yes := !p.denied && !slices.ContainsFunc(p.group, (*pass).disapproves) && !p.disapproves()
	return &yes
}

// disapproves reports whether a pass has a result that should approve the work and does not.
func (p *pass) disapproves() bool {
	return p.role.Judges && p.result != nil && (p.result.Outcome != "ok" || !pipeline.Approves(p.role.Approval, p.result.Verdict))
}

// verdict is what the last review said of the work, as it counts for the delivery: where roles give verdicts, all but an approval is a rejection.
func (e *engine) verdict(ctx workflow.Context) run.Verdict {
	v := e.j.state.Judgement()
	said := run.Verdict{Word: v.Word}
	if said.Rejected() || v.Approves() || v.Word == "" && v.Approved == nil && !e.in.Start.Judged {
		return said
	}
	if !follows(ctx, changeApproval) {
		return said
	}
	no := false
	return run.Verdict{Word: v.Word, Approved: &no}
}

// notApproved says for people why changes are not delivered without a question.
func notApproved(v run.Verdict) string {
	switch {
	case v.Word == "":
		return "No verdict approves the changes as they are now"
	case run.Verdict{Word: v.Word}.Rejected():
		return "The last verdict is " + v.Word
	}
	return "The last verdict is " + v.Word + ", not one that approves the changes"
}

// accepted reports whether an operator has let the result of a plan pass in a hand-off: it is not asked about again.
func (e *engine) accepted(ctx workflow.Context) bool {
	d := e.j.state.Decided
	if d == nil || d.Digest == "" || d.Action != run.ActionContinue && d.Action != run.ActionContinueWithWaiver {
		return false
	}
	last, _ := e.lastOutput()
	return d.Digest == last && follows(ctx, changeAccepted)
}

// unjudgedQuestion asks what is to become of a step whose role has given no verdict in all of its attempts.
func unjudgedQuestion(p *pass) string {
	return fmt.Sprintf("%s gave no verdict in %d attempts: %s. Continue without it?", p.role.Name, p.tried, p.result.Message)
}

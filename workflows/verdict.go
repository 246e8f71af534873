package workflows

import (
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// approved reports whether a pass of a role with verdicts approves the work; nil: its role returns none. A member
// of a group approves only if no other member disapproves.
func (p *pass) approved() *bool {
	if !p.role.HasVerdict {
		return nil
	}
	yes := !p.denied && !slices.ContainsFunc(p.group, (*pass).disapproves) && !p.disapproves()
	return &yes
}

// disapproves reports whether a pass has a result that should approve the work and does not.
func (p *pass) disapproves() bool {
	return p.role.HasVerdict && p.result != nil &&
		(p.result.Outcome != run.CategoryOK || !pipeline.Approves(p.role.Approval, p.result.Verdict))
}

// verdict returns the last review's verdict as it counts for the delivery: if roles return verdicts, all but an
// approval is a rejection.
func (e *engine) verdict() run.Verdict {
	v := e.j.state.Judgement()
	verdict := run.Verdict{Word: v.Word}
	if verdict.Rejected() || v.Approves() || v.Word == "" && v.Approved == nil && !e.in.Start.Judged {
		return verdict
	}
	no := false
	return run.Verdict{Word: v.Word, Approved: &no}
}

// notApproved describes why changes are not delivered without a question.
func notApproved(v run.Verdict) string {
	switch {
	case v.Word == "":
		return "No verdict approves the current changes"
	case run.Verdict{Word: v.Word}.Rejected():
		return "The last verdict is " + v.Word
	}
	return "The last verdict is " + v.Word + ", which does not approve the changes"
}

// accepted reports whether an operator accepted the result of a plan in a hand-off: it is not asked about again.
func (e *engine) accepted() bool {
	d := e.j.state.Decided
	if d == nil || d.Kind != run.QuestionHandoff || d.Digest == "" ||
		d.Action != run.ActionContinue && d.Action != run.ActionContinueWithWaiver {
		return false
	}
	last, _ := e.lastOutput()
	return d.Digest == last
}

// unjudgedQuestion asks what to do with a step whose role returned no verdict.
func unjudgedQuestion(p *pass) string {
	return fmt.Sprintf("%s returned no verdict in %d attempts: %s. Continue without it?", p.role.Name, p.attempt,
		p.result.Message)
}

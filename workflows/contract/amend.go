package contract

import (
	"time"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// AmendInput compares the plan of a run with another one.
type AmendInput struct {
	RunID string      `json:"run_id"`
	Store string      `json:"store"`
	Old   run.PlanRef `json:"old"`
	New   run.PlanRef `json:"new"`
	At    run.Place   `json:"at"`    // next step of the run
	First int         `json:"first"` // stage that the run began with
}

// AmendResult is what differs. A run adopts the new plan only if nothing is refused.
type AmendResult struct {
	Differences []run.Amendable `json:"differences,omitempty"`
	Refused     []string        `json:"refused,omitempty"` // values that the run cannot adopt, with the reason
	Terms       run.PlanTerms   `json:"terms"`             // of the new plan
	Budget      *run.Budget     `json:"budget,omitempty"`  // only if it differs
}

// TermsOf returns the terms of a plan for a run that began with a stage.
func TermsOf(p *pipeline.Plan, first int) run.PlanTerms {
	t := run.PlanTerms{
		TotalPasses: p.Total, MaxRounds: p.MaxRounds, Judged: p.JudgedFrom(first), TimeScale: p.TimeScale,
		Waits: run.Waits{
			RemindMS: p.Questions.Remind.Milliseconds(), ExpiresMS: p.Questions.Expires.Milliseconds(),
			OnExpiry: p.Questions.OnExpiry, Unattended: p.Unattended != "",
		},
	}
	for i, s := range p.Stages {
		ref := run.StageRef{Name: s.Name, Kind: string(s.Kind), Roles: s.RoleNames(), Sets: s.SetNames(), Acts: p.ActsFrom(i)}
		if s.Repeat != nil {
			ref.Rounds, t.Threshold = s.Repeat.Max, s.Threshold
		}
		t.Stages = append(t.Stages, ref)
	}
	for _, n := range p.Notify { // addresses may be secrets and stay in the plan
		t.Receivers = append(t.Receivers, run.Receiver{Name: n.Who(), On: n.On, TimeoutMS: n.Timeout.Milliseconds(),
			GiveUpMS: n.GiveUp.Milliseconds()})
	}
	return t
}

// BudgetOf returns the budget of a plan.
func BudgetOf(p *pipeline.Plan) run.Budget {
	b := p.Budget
	out := run.Budget{
		CapUSD: b.USD, WarnUSD: run.Cents(b.USD * b.WarnAt), Tokens: b.Tokens, Calls: b.Calls, Hours: b.Hours,
		PerPassUSD: b.PerPass.USD, PerPassTokens: b.PerPass.Tokens,
	}
	if at, err := pipeline.ParseDeadline(b.Deadline); err == nil { // checked when the definition was read
		out.Deadline = at.Format(time.RFC3339)
	}
	return out
}

// MaxDifferences is the maximum number of differences that an amendment journals.
const MaxDifferences = 100

// AmendablesOf is the journaled list of what an amendment changes.
func AmendablesOf(all []pipeline.Difference) []run.Amendable {
	var out []run.Amendable
	for _, d := range all[:min(len(all), MaxDifferences)] {
		out = append(out, run.Amendable{Name: d.Name(), File: d.File, Old: d.Old, New: d.New})
	}
	return out
}

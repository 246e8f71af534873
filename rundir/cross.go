package rundir

import (
	"github.com/passbook-run/passbook/run"
)

// crossMode is how a run across projects works: each project has a run and a checkout, and nothing is delivered alone.
const crossMode = "project_runs"

// projectsOf lists the sources of the projects of a run, by alias.
func projectsOf(s *run.State) map[string]string {
	all := map[string]string{}
	for _, p := range s.Projects {
		all[p.Alias] = p.Source
	}
	return all
}

// phasesOf is what requirement 001 reads of a run across projects and of a project's run; nil: nothing.
func phasesOf(s *run.State) *Phases {
	if v := s.Judgement(); s.MemberOf != nil && v.Approved != nil {
		return &Phases{FinalAcceptance: acceptance(v)}
	}
	if len(s.Projects) == 0 {
		return nil
	}
	all := &Phases{Projects: map[string]EmbeddedProject{}, CrossDelivery: delivered(s)}
	for _, p := range s.Projects {
		if p.Outcome == run.ProjectDone {
			all.Projects[p.Alias] = EmbeddedProject{Status: string(p.Status), RunID: p.RunID,
				Tree: run.DigestOf(p.Tree), Commit: p.Commit, USD: p.USD}
		}
	}
	return all
}

func acceptance(v run.Verdict) *FinalAcceptance {
	if v.Rejected() {
		return &FinalAcceptance{Verdict: "REJECTED"}
	}
	return &FinalAcceptance{Verdict: "APPROVED", ShipReady: true}
}

// delivered is what became of the changes of all projects; nil: no project was delivered yet. A project without changes
// counts as delivered.
func delivered(s *run.State) *CrossDelivery {
	d := &CrossDelivery{Status: string(run.CategoryOK), Projects: map[string]*run.Delivered{}}
	made := 0
	for _, p := range s.Projects {
		if p.Delivery == nil {
			continue
		}
		d.Projects[p.Alias] = p.Delivery
		made++
	}
	switch {
	case made == 0 && s.Reason == run.ReasonDeliveryFailed:
		d.Status = "failed"
	case made == 0:
		return nil
	case made < len(s.Projects):
		d.Status = "partial"
	}
	return d
}

// ofCross adds to a hand-off of a run across projects what it is about.
func ofCross(h *PhaseHandoff, q run.Question) {
	switch {
	case q.Project != nil:
		h.Kind, h.Alias, h.Child = "project", q.Project.Alias, q.Project.ID
	case q.Trigger == run.TriggerAcceptance:
		h.Kind = run.PhaseAcceptance
	}
}

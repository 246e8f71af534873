package records

import (
	"cmp"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// crossMode is how a run across projects works: each project has a run and a checkout, and nothing is delivered alone.
const crossMode = "project_runs"

// cross sets what requirement 001 reads of a run across projects and of a project's run.
func (m *Header) cross(s *run.State) {
	m.Projects, m.CrossMode, m.Phases, m.ProjectAlias, m.ParentRun = nil, "", nil, "", ""
	if of := s.MemberOf; of != nil {
		m.ProjectAlias, m.ParentRun = of.Alias, of.RunID
		if v := s.Judgement(); v.Approved != nil {
			m.Phases = &rundir.Phases{FinalAcceptance: acceptance(v)}
		}
	}
	if len(s.Projects) == 0 {
		return
	}
	m.CrossMode, m.Projects = crossMode, map[string]string{}
	m.Phases = &rundir.Phases{Projects: map[string]rundir.EmbeddedProject{}, CrossDelivery: delivered(s)}
	for _, p := range s.Projects {
		m.Projects[p.Alias] = p.Source
		if p.Outcome == run.ProjectDone {
			m.Phases.Projects[p.Alias] = rundir.EmbeddedProject{Status: string(p.Status), RunID: p.RunID,
				Tree: run.DigestOf(p.Tree), Commit: p.Commit, USD: p.USD}
		}
	}
}

func acceptance(v run.Verdict) *rundir.FinalAcceptance {
	if v.Rejected() {
		return &rundir.FinalAcceptance{Verdict: "REJECTED"}
	}
	return &rundir.FinalAcceptance{Verdict: "APPROVED", ShipReady: true}
}

// delivered is what became of the changes of all projects; nil: no project was delivered yet. A project without changes
// counts as delivered.
func delivered(s *run.State) *rundir.CrossDelivery {
	d := &rundir.CrossDelivery{Status: "ok", Projects: map[string]*run.Delivered{}}
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

// CrossCheckpoint is cross_checkpoint.json of a state; nil: the run is not one across projects.
func CrossCheckpoint(s *run.State) *rundir.CrossCheckpoint {
	if len(s.Projects) == 0 {
		return nil
	}
	c := &rundir.CrossCheckpoint{SubStatus: map[string]string{}}
	for _, p := range s.Projects {
		c.SubStatus[p.Alias] = string(cmp.Or(p.Outcome, run.ProjectPending))
	}
	if h := phaseHandoff(*s); h != nil {
		c.Pending, c.Kind, c.ID, c.Alias, c.Child = true, h.Kind, h.ID, h.Alias, h.Child
		if h.Kind == run.PhaseAcceptance {
			c.CFAPaused = &rundir.CFAPaused{Verdict: h.Verdict, Tree: h.Digest}
		}
	}
	if q, open := s.Open(run.QuestionGate); open && !c.Pending && q.Trigger != run.TriggerBlocked {
		c.PendingGate = &rundir.PendingGate{Name: "contract_check", RunPolicy: "always", Choices: []string{"run", "skip"},
			OnSkip: run.ActionContinueWithWaiver}
	}
	return c
}

// ofCross adds to a hand-off of a run across projects what it is about.
func ofCross(h *rundir.PhaseHandoff, q run.Question) {
	switch {
	case q.Project != nil:
		h.Kind, h.Alias, h.Child = "project", q.Project.Alias, q.Project.ID
	case q.Trigger == run.TriggerAcceptance:
		h.Kind = run.PhaseAcceptance
	}
}

package records

import (
	"cmp"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

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

package rundir

import (
	"cmp"

	"github.com/passbook-run/passbook/run"
)

// CrossCheckpointOf is cross_checkpoint.json of a state; nil: the run is not one across projects.
func CrossCheckpointOf(s *run.State) *CrossCheckpoint {
	if len(s.Projects) == 0 {
		return nil
	}
	c := &CrossCheckpoint{SubStatus: map[string]string{}}
	for _, p := range s.Projects {
		c.SubStatus[p.Alias] = string(cmp.Or(p.Outcome, run.ProjectPending))
	}
	if h := phaseHandoff(*s); h != nil {
		c.Pending, c.Kind, c.ID, c.Alias, c.Child = true, h.Kind, h.ID, h.Alias, h.Child
		if h.Kind == run.PhaseAcceptance {
			c.CFAPaused = &CFAPaused{Verdict: h.Verdict, Tree: h.Digest}
		}
	}
	if q, open := s.Open(run.QuestionGate); open && !c.Pending && q.Trigger != run.TriggerBlocked {
		c.PendingGate = &PendingGate{Name: "contract_check", RunPolicy: "always", Choices: []string{"run", "skip"},
			OnSkip: run.ActionContinueWithWaiver}
	}
	return c
}

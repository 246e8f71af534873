package rundir

import (
	"github.com/passbook-run/passbook/run"
)

// phaseHandoff returns the hand-off of a state as meta.json has it; nil: none is open or undecided.
func phaseHandoff(s run.State) *PhaseHandoff {
	q, open := s.Handoff()
	if !open {
		return nil
	}
	h := &PhaseHandoff{
		ID: q.ID, Phase: q.Phase, Question: q.Text, Type: q.Type, Trigger: q.Trigger, Verdict: q.Verdict,
		Approved: q.Approved,
		Round:    q.Round, LoopMaxRounds: q.LoopMaxRounds, Actions: list(q.Actions),
		Artifacts: append([]run.Attached{}, q.Artifacts...), LastOutput: q.LastOutput, Digest: q.Digest,
		RequestedAt: q.RequestedAt, Deadlines: q.Deadlines, Reminded: q.Reminded,
	}
	ofCross(h, q)
	return h
}

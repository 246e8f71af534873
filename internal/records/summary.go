package records

import (
	"slices"
	"strconv"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// lastPasses is how many records the summary holds.
const lastPasses = 3

// counted is how long the growing lists of the records are.
type counted struct{ checkpoints, errors int }

func Counted(b *rundir.PipelineState) counted {
	return counted{len(b.Checkpoints), len(b.ErrorHistory)}
}

// Summarize adds what one event added to the records. A revert has changed the records, so they are counted again.
func Summarize(s *rundir.Summary, e run.Event, had counted, b *rundir.PipelineState) {
	if e.Kind == run.KindRunReverted {
		*s, had = rundir.Summary{}, counted{}
		for _, r := range b.PassRecords {
			pass(s, r)
		}
	}
	s.CurrentPhase, s.PhaseReason, s.Threshold, s.MaxCycles = b.CurrentPhase, b.PhaseReason, b.PAScoreThreshold,
		b.MaxPACycles
	for _, c := range b.Checkpoints[had.checkpoints:] {
		s.Checkpoints++
		if s.FirstCheckpoint == nil {
			s.FirstCheckpoint = text(c.ID)
		}
		s.LastCheckpoint = text(c.ID)
	}
	for _, r := range b.ErrorHistory[had.errors:] {
		switch {
		case r.IsRevert(): // recorded among the errors, but none
		case r.Recovered:
			s.Recovered++
		default:
			s.Unrecovered++
		}
	}
	if e.Kind != run.KindPassEnd {
		return
	}
	var p run.PassEnd
	e.Decode(&p)
	if r, there := b.PassRecords[strconv.Itoa(p.Number)]; there {
		pass(s, r)
	}
}

// pass keeps the records with the highest numbers, in order.
func pass(s *rundir.Summary, r rundir.PassRecord) {
	all := slices.DeleteFunc(slices.Clone(s.LastPasses),
		func(o rundir.PassRecord) bool { return o.GlobalPassNumber == r.GlobalPassNumber })
	all = append(all, r)
	slices.SortFunc(all, func(x, y rundir.PassRecord) int { return x.GlobalPassNumber - y.GlobalPassNumber })
	s.LastPasses = all[max(0, len(all)-lastPasses):]
}

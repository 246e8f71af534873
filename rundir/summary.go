package rundir

import (
	"slices"
	"strconv"

	"github.com/passbook-run/passbook/run"
)

// lastPasses is how many records the summary holds.
const lastPasses = 3

// Summary is what people ask first of a run's records. It stands in meta.json, so that answering costs the same however many records
// there are.
type Summary struct {
	CurrentPhase    string       `json:"currentPhase"`
	PhaseReason     *string      `json:"phaseReason"`
	Threshold       *float64     `json:"paScoreThreshold"`
	MaxCycles       int          `json:"maxPACycles"`
	LastPasses      []PassRecord `json:"lastPasses"`
	Checkpoints     int          `json:"checkpoints"`
	FirstCheckpoint *string      `json:"firstCheckpoint"`
	LastCheckpoint  *string      `json:"lastCheckpoint"`
	Recovered       int          `json:"recovered"` // errors
	Unrecovered     int          `json:"unrecovered"`
}

// counted is how long the growing lists of the records are.
type counted struct{ checkpoints, errors int }

func (b *PipelineState) counted() counted { return counted{len(b.Checkpoints), len(b.ErrorHistory)} }

// take notes what one event added to the records. A revert has taken the records back, so they are counted afresh.
func (s *Summary) take(e run.Event, had counted, b *PipelineState) {
	if e.Kind == run.KindRunReverted {
		*s, had = Summary{}, counted{}
		for _, r := range b.PassRecords {
			s.pass(r)
		}
	}
	s.CurrentPhase, s.PhaseReason, s.Threshold, s.MaxCycles = b.CurrentPhase, b.PhaseReason, b.PAScoreThreshold, b.MaxPACycles
	for _, c := range b.Checkpoints[had.checkpoints:] {
		s.Checkpoints++
		if s.FirstCheckpoint == nil {
			s.FirstCheckpoint = text(c.ID)
		}
		s.LastCheckpoint = text(c.ID)
	}
	for _, r := range b.ErrorHistory[had.errors:] {
		if r.Recovered {
			s.Recovered++
		} else {
			s.Unrecovered++
		}
	}
	if e.Kind != run.KindPassEnd {
		return
	}
	var p run.PassEnd
	e.Decode(&p)
	if r, there := b.PassRecords[strconv.Itoa(p.Number)]; there {
		s.pass(r)
	}
}

// pass keeps the records with the highest numbers, in order.
func (s *Summary) pass(r PassRecord) {
	all := slices.DeleteFunc(slices.Clone(s.LastPasses), func(o PassRecord) bool { return o.GlobalPassNumber == r.GlobalPassNumber })
	all = append(all, r)
	slices.SortFunc(all, func(x, y PassRecord) int { return x.GlobalPassNumber - y.GlobalPassNumber })
	s.LastPasses = all[max(0, len(all)-lastPasses):]
}

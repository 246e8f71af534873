package rundir

import (
	"slices"
	"strconv"
)

// lastPasses is how many records the summary holds.
const lastPasses = 3

// Summarize returns the figures of the records.
func Summarize(b *PipelineState) Summary {
	s := Summary{CurrentPhase: b.CurrentPhase, PhaseReason: b.PhaseReason, Threshold: b.PAScoreThreshold,
		MaxCycles: b.MaxPACycles, Checkpoints: len(b.Checkpoints)}
	if n := len(b.Checkpoints); n > 0 {
		s.FirstCheckpoint, s.LastCheckpoint = text(b.Checkpoints[0].ID), text(b.Checkpoints[n-1].ID)
	}
	for _, r := range b.ErrorHistory {
		switch {
		case r.IsRevert(): // recorded among the errors, but none
		case r.Recovered:
			s.Recovered++
		default:
			s.Unrecovered++
		}
	}
	var numbers []int
	for _, r := range b.PassRecords {
		numbers = append(numbers, r.GlobalPassNumber)
	}
	slices.Sort(numbers)
	for _, n := range numbers[max(0, len(numbers)-lastPasses):] {
		s.LastPasses = append(s.LastPasses, b.PassRecords[strconv.Itoa(n)])
	}
	return s
}

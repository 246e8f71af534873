package report

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestAxesOfCountsHaveIntegerLabels draws few passes and rounds, whose default labels have fractions.
func TestAxesOfCountsHaveIntegerLabels(t *testing.T) {
	score := 2.0
	rounds := rundir.PipelineState{PACycleRecords: map[string]rundir.PACycleRecord{
		"1": {CycleNumber: 1, PAScore: &score}, "2": {CycleNumber: 2, PAScore: &score}}}
	for name, d := range map[string]*drawing{
		"one bar":    {title: "t", bars: []bars{{values: []float64{1}}}},
		"three bars": {title: "t", bars: []bars{{values: []float64{1, 0, 2}}}},
		"a scale of fractions": {title: "t", x: whole, y: whole,
			lines: []line{{points: []point{{X: 1, Y: 0.5}, {X: 2, Y: 1}}}}},
		"two rounds": scoreDrawing(rounds, run.WordingStages.Words()),
	} {
		t.Run(name, func(t *testing.T) {
			c := d.chart()
			for _, s := range []shape{c.Wide, c.Narrow} {
				require.NotEmpty(t, s.Columns)
				marks := s.Columns
				if len(d.bars) > 0 || d.y != nil { // a score may have a fraction
					marks = slices.Concat(marks, s.Rows)
				}
				for _, m := range marks {
					require.Regexp(t, `^\d+$`, m.Label)
				}
			}
		})
	}
}

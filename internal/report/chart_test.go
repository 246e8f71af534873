package report

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

var axisLabel = regexp.MustCompile(`<text[^>]*>([^<]*)</text>`)

// TestAxesOfCountsHaveIntegerLabels draws few passes and rounds, whose default labels have fractions.
func TestAxesOfCountsHaveIntegerLabels(t *testing.T) {
	score := 2.0
	rounds := rundir.PipelineState{PACycleRecords: map[string]rundir.PACycleRecord{
		"1": {CycleNumber: 1, PAScore: &score}, "2": {CycleNumber: 2, PAScore: &score}}}
	for name, d := range map[string]*drawing{
		"one bar":    {title: "t", bars: []bars{{values: []float64{1}}}},
		"three bars": {title: "t", bars: []bars{{values: []float64{1, 0, 2}}}},
		"a scale of fractions": {title: "t", x: whole, y: whole,
			lines: []line{{points: plotter.XYs{{X: 1, Y: 0.5}, {X: 2, Y: 1}}}}},
		"two rounds": scoreDrawing(rounds, run.WordingStages.Words()),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := d.chart()
			require.NoError(t, err)
			for _, svg := range []string{string(c.Wide), string(c.Narrow)} {
				found := axisLabel.FindAllStringSubmatch(svg, -1)
				require.NotEmpty(t, found)
				for _, label := range found {
					require.Regexp(t, `^\d+$`, label[1])
				}
			}
		})
	}
}

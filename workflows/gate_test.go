package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestAQualityGate rests the run after each round that does not meet it, and lets it go on when a person says so.
func TestAQualityGate(t *testing.T) {
	w := newWorld(t, strings.Replace(aLoop, "    dir: cycle-{n}\n", "    dir: cycle-{n}\n    quality_gate: score >= 2\n", 1))
	w.agent.scores = []float64{1, 2, 3}
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1, "only the first round is below the gate")
	require.Equal(t, run.QualityGate, paused[0].Reason)
	require.Equal(t, "round 1 gave score 1, the gate wants score >= 2", paused[0].Detail)
}

// TestALoopThatDoesNotGetThereSaysSo: the run goes on, with a warning in its log.
func TestALoopThatDoesNotGetThereSaysSo(t *testing.T) {
	w := newWorld(t, aLoop)
	w.agent.scores = []float64{1, 2, 2.5}
	w.done()
	var unmet []string
	for _, p := range payloads[run.PhaseEnd](w, run.KindPhaseEnd) {
		unmet = append(unmet, p.Unmet)
	}
	require.Equal(t, []string{"", "", "", "score >= 3 (it gave score 2.5)"}, unmet)

	w = newWorld(t, aLoop)
	w.agent.scores = []float64{1, 3}
	w.done()
	for _, p := range payloads[run.PhaseEnd](w, run.KindPhaseEnd) {
		require.Empty(t, p.Unmet)
	}
}

package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

func TestQualityGatePauses(t *testing.T) {
	w := newHarness(
		t, strings.Replace(aLoop, "    dir: cycle-{n}\n", "    dir: cycle-{n}\n    quality_gate: score >= 2\n", 1),
	)
	w.agent.scores = []float64{1, 2, 3}
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1, "only the first round is below the gate")
	require.Equal(t, run.QualityGate, paused[0].Reason)
	require.Equal(t, "round 1 returned score 1, the gate requires score >= 2", paused[0].Detail)
}

func TestUnmetLoopConditionIsJournaled(t *testing.T) {
	w := newHarness(t, aLoop)
	w.agent.scores = []float64{1, 2, 2.5}
	w.done()
	var unmet []string
	for _, p := range payloads[run.PhaseEnd](w, run.KindPhaseEnd) {
		unmet = append(unmet, p.Unmet)
	}
	require.Equal(t, []string{"", "", "", "score >= 3 (values: score 2.5)"}, unmet)

	w = newHarness(t, aLoop)
	w.agent.scores = []float64{1, 3}
	w.done()
	for _, p := range payloads[run.PhaseEnd](w, run.KindPhaseEnd) {
		require.Empty(t, p.Unmet)
	}
}

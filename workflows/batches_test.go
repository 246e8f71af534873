package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

func TestPassStartIsProjectedBeforeCall(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.done()

	require.Equal(t, []string{
		"Open",
		"Project 1-3 written", // run.start, phase.start, pass.start
		"RunPass g0.001.1.-.1",
		"Project 4-6 written", // pass.end, artifact.updated, pass.start: one projection a pass
		"RunPass g0.002.1.-.1",
		"Project 7-11 written", // and what closes stage and run
		"Seal 1-11",
	}, w.trace)
	require.Equal(t, []string{
		"run.start", "phase.start", "pass.start 001", "pass.end 001", "artifact.updated 001", "pass.start 002",
		"pass.end 002",
		"artifact.updated 002", "phase.end", "checkpoint.created cp-built", "run.end",
	}, w.story(run.KindRunStart, run.KindPhaseStart, run.KindPassStart, run.KindPassEnd, run.KindArtifactUpdated,
		run.KindPhaseEnd,
		run.KindCheckpointCreated, run.KindRunEnd))
}

func TestResultReportsOutcome(t *testing.T) {
	w := newHarness(t, twoPasses)
	r := w.done()
	require.Equal(t, "page of run-1/g0.002.1.-.1", r.Artifact)
	require.InDelta(t, 2, r.USD, 1e-9)
	require.Equal(t, w.dir.tail(), r.Tail)
	require.Equal(t, "segment-11", r.Head)
	require.Equal(t, run.Done, w.dir.state(t).Status)
}

func TestPassGetsPreviousArtifact(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.done()
	starts := payloads[run.PassStart](w, run.KindPassStart)
	require.Equal(t, []string{"seed", "page of run-1/g0.001.1.-.1"}, []string{starts[0].Before, starts[1].Before})
}

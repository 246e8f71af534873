package watch

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestScreenFollowsLanes: the records of lanes change while that of their run does not.
func TestScreenFollowsLanes(t *testing.T) {
	write := func(d rundir.Dir, s run.State) {
		raw, err := rundir.Seal(rundir.Meta{State: s})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(d.Path(rundir.MetaFile), raw, 0o600))
	}
	p := run.LanePlace{Key: "k", Name: "k.go"}
	of := rundir.At(t.TempDir())
	write(of, run.State{RunID: "r", Status: run.Running, Stages: []run.StageRef{{Name: "work"}},
		Lanes: &run.Lanes{Count: 2, Begun: 1, Active: []run.Lane{{LanePlace: p}}}})
	lane := rundir.At(of.Path(p.Dir("work")))
	require.NoError(t, lane.Take(run.Claim{Version: 1, RunID: p.ChildRunID("r", 0)}))

	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	shot := reader{o: Options{Dir: of}}.read(now)
	require.NoError(t, shot.err)
	require.Equal(t, "starts", shot.scene.Figures.Lanes[0].Does)
	require.Empty(t, shot.scene.Figures.InFlight)
	write(lane, run.State{Status: run.Running, InFlight: []run.InFlightCall{
		{Step: "work/1", Role: "worker", Call: "c", Attempt: 1, StartedAt: run.Time(now.Add(-time.Minute))}}})
	require.False(t, shot.reader.changed())
	shot = shot.reader.read(now)
	require.Equal(t, "step 1, worker", shot.scene.Figures.Lanes[0].Does)
	require.Equal(t, time.Minute, shot.scene.Figures.Lanes[0].Elapsed)
	require.Equal(t, "worker k.go", shot.scene.Figures.InFlight[0].Name())
}

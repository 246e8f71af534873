package records_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestStateBehindTheEvents reads state.json of a long run, which is older than meta.json, as of meta.json: without the
// events that come after that.
func TestStateBehindTheEvents(t *testing.T) {
	j := newJournal(t)
	j.start()
	old, behind, size := whole(t, j.state), j.head.State.Clone(), j.size
	for n := 1; n <= 3; n++ {
		j.add(run.KindPassEnd, ended(builder(n), int64(n)))
	}
	want, seq := whole(t, j.state), j.seq
	j.add(run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown})
	d := rundir.At(t.TempDir())
	put := func(name string, v any) {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(d.Path(name), raw, 0o600))
	}
	require.NoError(t, os.Mkdir(d.Path(layout.Orchestrator), 0o700))
	require.NoError(t, os.WriteFile(d.Path(layout.EventsFile), []byte(j.lines.String()), 0o600))
	_, err := records.State(d)
	require.ErrorIs(t, err, os.ErrNotExist)
	put(layout.StateFile, old)
	state := func() rundir.PipelineState {
		b, err := records.State(d)
		require.NoError(t, err)
		return b
	}
	require.Equal(t, old, state(), "without a meta.json it counts")
	m := rundir.Meta{Events: rundir.EventsMark{Seq: seq, Size: 1}}
	put(layout.MetaFile, m)
	require.Equal(t, old, state(), "it is not behind")
	m.Behind = &rundir.Behind{Seq: 2, Size: size, State: behind}
	put(layout.MetaFile, m)
	require.Equal(t, want, state())
	m.Behind.Seq = 1
	put(layout.MetaFile, m)
	require.Equal(t, old, state(), "meta.json is of another moment")

	m.Behind.Seq, m.Events.Seq = 2, j.seq
	got, err := records.CatchUp(d, whole(t, old), m)
	require.NoError(t, err)
	require.Equal(t, whole(t, j.state), got, "up to the last line")
	m.Events.Seq++
	_, err = records.CatchUp(d, whole(t, old), m)
	require.ErrorIs(t, err, disk.ErrDamaged)
	require.NoError(t, os.Remove(d.Path(layout.EventsFile)))
	require.NoError(t, os.Mkdir(d.Path(layout.EventsFile), 0o700))
	_, err = records.CatchUp(d, whole(t, old), m)
	require.ErrorContains(t, err, "is a directory")
	require.NotErrorIs(t, err, disk.ErrDamaged, "it cannot be read")
}

// whole copies a state as it is on disk.
func whole(t *testing.T, state rundir.PipelineState) rundir.PipelineState {
	t.Helper()
	raw, err := json.Marshal(state)
	require.NoError(t, err)
	b, err := rundir.At("").Parse(raw)
	require.NoError(t, err)
	return b
}

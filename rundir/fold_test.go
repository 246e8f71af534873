package rundir_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func TestFoldOfADirectory(t *testing.T) {
	d := rundir.Dir{Root: t.TempDir()}
	fold, tally, err := d.Fold()
	require.NoError(t, err)
	require.True(t, tally.Sound())
	require.Equal(t, run.Unknown, fold.Snapshot().Status)

	stream := `{"seq":1,"kind":"run.start","payload":{"epoch":1}}` + "\n" + `nonsense` + "\n" + `{"seq":2,"kind":"run.paused","payload":{"reason":"disk-full"}}` + "\n" + `{"seq":3`
	require.NoError(t, os.WriteFile(d.Path(rundir.EventsFile), []byte(stream), 0o600))
	fold, tally, err = d.Fold()
	require.NoError(t, err)
	require.Equal(t, run.Paused, fold.State().Status)
	require.Equal(t, run.DiskFull, fold.State().Reason)
	require.Equal(t, int64(2), tally.Findings[0].Line)
	require.Equal(t, int64(8), tally.Torn)

	require.NoError(t, os.Remove(d.Path(rundir.EventsFile)))
	require.NoError(t, os.Mkdir(d.Path(rundir.EventsFile), 0o700))
	_, _, err = d.Fold()
	require.ErrorContains(t, err, "events.jsonl")
}

package rundir_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/rundir"
)

func TestFollowGoesOnWhereItWasWhenTheDirectoryWasAway(t *testing.T) {
	d := rundir.At(t.TempDir())
	events := d.Path(rundir.EventsFile)
	require.NoError(t, os.WriteFile(events, []byte("{\"seq\":1}\n{\"seq\":2}\n{\"se"), 0o600))
	lines, next, err := d.Follow(0)
	require.NoError(t, err)
	require.Equal(t, []string{`{"seq":1}`, `{"seq":2}`}, lines)

	require.NoError(t, os.Remove(events))
	lines, away, err := d.Follow(next)
	require.NoError(t, err)
	require.Empty(t, lines)
	require.Equal(t, next, away)

	require.NoError(t, os.WriteFile(events, []byte("{\"seq\":1}\n{\"seq\":2}\n{\"seq\":3}\n"), 0o600))
	lines, _, err = d.Follow(away)
	require.NoError(t, err)
	require.Equal(t, []string{`{"seq":3}`}, lines)
}

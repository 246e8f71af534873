package fsck_test

import (
	"os"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"
)

// follow reads the lines from an offset on, and gives the offset to go on from.
func follow(t *testing.T, d projector.Dir, from int64) (lines []string, next int64) {
	t.Helper()
	next = from
	for line, err := range d.Lines(from) {
		require.NoError(t, err)
		lines, next = append(lines, string(line.Bytes)), line.End
	}
	return lines, next
}

func TestFollowGoesOnWhereItWasWhenTheDirectoryWasAway(t *testing.T) {
	d := projector.At(t.TempDir())
	events := d.Path(layout.EventsFile)
	require.NoError(t, os.WriteFile(events, []byte("{\"seq\":1}\n{\"seq\":2}\n{\"se"), 0o600))
	lines, next := follow(t, d, 0)
	require.Equal(t, []string{`{"seq":1}`, `{"seq":2}`}, lines)

	require.NoError(t, os.Remove(events))
	lines, away := follow(t, d, next)
	require.Empty(t, lines)
	require.Equal(t, next, away)

	require.NoError(t, os.WriteFile(events, []byte("{\"seq\":1}\n{\"seq\":2}\n{\"seq\":3}\n"), 0o600))
	lines, _ = follow(t, d, away)
	require.Equal(t, []string{`{"seq":3}`}, lines)
}

package api

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/rundir"
)

// TestLastErrors reads the newest lines of errors.jsonl, whose time has the key of all logs.
func TestLastErrors(t *testing.T) {
	d := rundir.At(t.TempDir())
	none, err := LastErrors(d)
	require.NoError(t, err)
	require.Empty(t, none)

	path := d.Path(rundir.ErrorsLog)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	lines := ""
	for i := 1; i <= 6; i++ {
		lines += fmt.Sprintf(`{"ts":"2026-01-02T03:04:0%d.000Z","context":"pass-%d","category":"timeout","message":"m",`+
			`"recovered":true,"recoveredAtAttempt":2,"diagnostics":"d"}`+"\n", i, i)
	}
	require.NoError(t, os.WriteFile(path, []byte(lines), 0o600))
	last, err := LastErrors(d)
	require.NoError(t, err)
	require.Len(t, last, 5)
	at := 2
	require.Equal(t, rundir.ErrorRecord{Timestamp: "2026-01-02T03:04:06.000Z", Context: "pass-6", Category: "timeout",
		Message: "m", Recovered: true, RecoveredAtAttempt: &at, Diagnostics: "d"}, last[4])
}

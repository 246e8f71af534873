package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheExitRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "removed by the agent")
	_, ok, err := ReadExit(dir)
	require.NoError(t, err)
	require.False(t, ok)

	want := Exit{Code: -1, Signal: "killed", Started: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), Duration: time.Second, TimedOut: true}
	require.NoError(t, WriteExit(dir, want, "stdout", "stderr"))
	got, ok, err := ReadExit(dir)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, want, got)
	raw, err := os.ReadFile(filepath.Join(dir, ExitFile))
	require.NoError(t, err)
	require.JSONEq(t, `{"version":1,"delivery":"`+dir+`","code":-1,"signal":"killed","started":"2026-11-01T12:00:00Z","duration":1000000000,"timed_out":true}`, string(raw))
}

func TestAnExitRecordThatIsNone(t *testing.T) {
	for _, row := range []struct{ name, record, says string }{
		{"half of it", `{"version":1,"co`, ""},
		{"the agent never started", `{"version":1,"code":-1,"spawn":{"path":"/x","text":"gone"}}`, ""},
		{"of another release", `{"version":2,"code":0}`, "version 2 is unknown"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, ExitFile), []byte(row.record), 0o600))
			_, ok, err := ReadExit(dir)
			require.False(t, ok)
			if row.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.says)
			}
		})
	}
}

package operations

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func TestFind(t *testing.T) {
	state, here, there := t.TempDir(), filepath.Join(t.TempDir(), "here"), filepath.Join(t.TempDir(), "there")
	for id, dir := range map[string]string{"aa11": here, "aa22": there} {
		require.NoError(t, projector.At(dir).Take(run.Claim{Version: 1, RunID: id}))
		require.NoError(t, Index(state, id, dir))
	}
	t.Chdir(here)
	tests := []struct{ name, what, want string }{
		{"directory", there, there},
		{"nothing is the current directory", "", here},
		{"relative directory", "../here", here},
		{"id", "aa22", there},
		{"beginning of an id", "aa1", here},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := Find(state, tt.what, false)
			require.NoError(t, err)
			require.Equal(t, tt.want, d.Root)
		})
	}

	foreign := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, layout.MetaFile), []byte("{}"), 0o600))
	d, err := Find(state, foreign, false)
	require.NoError(t, err, "another program's")
	require.Equal(t, foreign, d.Root)

	var name *NameError
	_, err = Find(state, "aa", false)
	require.ErrorAs(t, err, &name)
	require.Equal(t, []string{"aa11", "aa22"}, name.Found)
	_, err = Find(state, "bb", false)
	require.ErrorAs(t, err, &name)
	require.Empty(t, name.Found)
	_, err = Find(state, t.TempDir(), false)
	require.ErrorIs(t, err, rundir.ErrNoRun)
}

// TestIndexKeepsAnEqualRecord: a resume works with a state directory that is full.
func TestIndexKeepsAnEqualRecord(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, Index(state, "one", "/runs/1"))
	folder := filepath.Join(state, "runs")
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(folder, long, long))
	require.NoError(t, Index(state, "one", "/runs/1"))
	info, err := os.Stat(folder)
	require.NoError(t, err)
	require.WithinDuration(t, long, info.ModTime(), time.Second)

	require.NoError(t, Index(state, "one", "/runs/moved"))
	raw, err := os.ReadFile(filepath.Join(folder, "one"))
	require.NoError(t, err)
	require.Equal(t, "/runs/moved\n", string(raw))
}

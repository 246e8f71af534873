// Package forgery changes run directories so that their files still agree. Only tests use it.
package forgery

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Journal rewrites the events of a run directory and what follows from them, with a text of the same length.
func Journal(t *testing.T, dir, text, with string) {
	t.Helper()
	chain := func() string {
		raw, err := os.ReadFile(filepath.Join(dir, rundir.EventsFile))
		require.NoError(t, err)
		return string(run.Chain("").Over(strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")))
	}
	before := chain()
	for _, name := range []string{rundir.EventsFile, rundir.MetaFile} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(raw), text)
		forged := strings.ReplaceAll(string(raw), text, with)
		if name == rundir.MetaFile {
			require.Contains(t, forged, before)
			forged = strings.ReplaceAll(forged, before, chain())
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(forged), 0o600))
	}
}

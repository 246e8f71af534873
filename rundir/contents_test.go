package rundir_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestContents knows everything that a run makes, and nothing else.
func TestContents(t *testing.T) {
	for _, b := range bodies()[:8] { // the others are of another program
		t.Run(b.name, func(t *testing.T) {
			d, _ := b.write(t)
			lays(t, d.Root, "_orchestrator/screenshots~1/cycle-1/report.md", "events.jsonl.tmp.abcdef", ".gitignore")
			require.NoError(t, os.WriteFile(d.Path(".gitignore"), []byte(rundir.HiddenFromGit), 0o600))
			c, err := d.Contents()
			require.NoError(t, err)
			require.NotContains(t, c.Foreign, ".gitignore")
			if b.name == "done" {
				require.Empty(t, c.Foreign)
			}
			require.Greater(t, c.Files, 5)
			lays(t, d.Root, "mine.txt", "_orchestrator/mine/deep.txt")
			require.NoError(t, os.WriteFile(d.Path(".gitignore"), []byte("mine\n"), 0o600))
			c, err = d.Contents()
			require.NoError(t, err)
			for _, name := range []string{".gitignore", "mine.txt", "_orchestrator/mine"} {
				require.Contains(t, c.Foreign, name)
			}
		})
	}
}

// TestRemoveDirectory removes all that a run has made: the claim last, and the directory with it. An archived run goes by itself.
func TestRemoveDirectory(t *testing.T) {
	s := whole(t)
	d := written(t, s)
	claim := run.Claim{Version: 1, RunID: "r1"}
	if _, err := d.Claim(); err != nil {
		require.NoError(t, d.Take(claim))
	}
	_, err := d.Archive(t.Context())
	require.NoError(t, err)
	require.NoError(t, d.Take(run.Claim{Version: 1, RunID: "r2"}))
	archived, err := d.Archived()
	require.NoError(t, err)
	require.Len(t, archived, 1)
	c, err := d.Contents()
	require.NoError(t, err)
	require.Len(t, c.Archived, 1)
	require.Equal(t, rundir.ClaimFile, c.Own[len(c.Own)-1])
	require.NoError(t, d.Remove())
	require.NoFileExists(t, d.Path(rundir.ClaimFile))
	_, err = archived[0].Claim()
	require.NoError(t, err, "an earlier run stays")
	require.NoError(t, archived[0].Remove())
	require.NoDirExists(t, archived[0].Root)
}

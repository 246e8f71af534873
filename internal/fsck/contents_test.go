package fsck_test

import (
	"os"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestContents knows everything that a run makes, and nothing else.
func TestContents(t *testing.T) {
	for _, b := range bodies()[:8] { // the others are of another program
		t.Run(b.name, func(t *testing.T) {
			d, _ := b.write(t)
			lays(t, d.Root, "_orchestrator/screenshots~1/cycle-1/report.md", "_orchestrator/edits/before-7.html",
				"events.jsonl.tmp.abcdef", ".gitignore")
			require.NoError(t, os.WriteFile(d.Path(".gitignore"), []byte(layout.HiddenFromGit), 0o600))
			c, err := projector.ReadContents(d.Dir)
			require.NoError(t, err)
			require.NotContains(t, c.Foreign, ".gitignore")
			if b.name == "done" {
				require.Empty(t, c.Foreign)
			}
			require.Greater(t, c.Files, 5)
			lays(t, d.Root, "mine.txt", "_orchestrator/mine/deep.txt", "_orchestrator/kept/page.css")
			require.NoError(t, os.WriteFile(d.Path(".gitignore"), []byte("mine\n"), 0o600))
			c, err = projector.ReadContents(d.Dir)
			require.NoError(t, err)
			for _, name := range []string{".gitignore", "mine.txt", "_orchestrator/mine", "_orchestrator/kept"} {
				require.Contains(t, c.Foreign, name)
			}
		})
	}
}

// TestRemoveDirectory removes all that a run has made: the claim last, and the directory with it. An archived run goes
// by itself.
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
	c, err := projector.ReadContents(d.Dir)
	require.NoError(t, err)
	require.Len(t, c.Archived, 1)
	require.Equal(t, layout.ClaimFile, c.Own[len(c.Own)-1])
	require.NoError(t, d.Remove())
	require.NoFileExists(t, d.Path(layout.ClaimFile))
	_, err = archived[0].Claim()
	require.NoError(t, err, "an earlier run stays")
	require.NoError(t, projector.Dir{Dir: archived[0]}.Remove())
	require.NoDirExists(t, archived[0].Root)
}

// TestContentsOfAnArchive: of an archived run, too, only what it has made is its own, and what stays of it is not the
// next run's.
func TestContentsOfAnArchive(t *testing.T) {
	d := written(t, whole(t))
	if _, err := d.Claim(); err != nil {
		require.NoError(t, d.Take(run.Claim{Version: 1, RunID: "r1"}))
	}
	lays(t, d.Root, "_orchestrator/mine.md", "_orchestrator/notes/mine.md", "workspace/made.txt")
	to, err := d.Archive(t.Context())
	require.NoError(t, err)
	archived := projector.At(d.Path(to))
	lays(t, archived.Root, "later.txt")
	c, err := projector.ReadContents(archived.Dir)
	require.NoError(t, err)
	require.Equal(t, []string{"later.txt", "mine.md", "notes"}, c.Foreign)
	require.Contains(t, c.Own, "spend.jsonl")
	require.NoError(t, d.Take(run.Claim{Version: 1, RunID: "r2"}))
	require.NoError(t, archived.Remove())
	left, err := os.ReadDir(archived.Root)
	require.NoError(t, err)
	require.Len(t, left, 3)
	require.FileExists(t, archived.Path("notes/mine.md"))

	c, err = projector.ReadContents(d.Dir)
	require.NoError(t, err)
	require.Contains(t, c.Foreign, to)
	require.NoError(t, d.Remove())
	require.FileExists(t, archived.Path("notes/mine.md"))
}

// TestContentsOfRedoneRounds: evidence of a pass that is done again has a folder of its own, also where its round has
// one without a folder above it.
func TestContentsOfRedoneRounds(t *testing.T) {
	s := newStory(t)
	s.start()
	for redo := range 3 {
		p := run.Pass{Step: "review/1", Role: "critic", Gives: "report", Round: 1, InRound: 1, OfRound: 1, Title: "t",
			Description: "d", Dir: "round-1", Redo: redo}
		s.begin(p, 1)
		s.end(p, "ok", 1)
	}
	s.send()
	d := written(t, s)
	require.DirExists(t, d.Path("_orchestrator/round-1-redo-2"))
	lays(t, d.Root, "_orchestrator/round-1-redo-1~1/critic-prompt.md", "_orchestrator/round-1-redo-3/mine.txt")
	c, err := projector.ReadContents(d.Dir)
	require.NoError(t, err)
	require.Equal(t, []string{"_orchestrator/round-1-redo-3"}, c.Foreign)
}

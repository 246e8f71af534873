package fsck_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// A failed pass is done again after an edit: it is given the edited artifact, and backs that up where what it was given
// first lay.
func TestEditKeepsBackup(t *testing.T) {
	s := newStory(t)
	s.start()
	s.phase = "weave"
	s.begin(about(1), 1)
	s.fail(about(1), 1)
	s.add(run.KindRunPaused, run.RunPaused{Reason: run.PassFailed})
	s.add(run.KindRunResumed, run.RunResumed{Epoch: 1})
	s.add(run.KindArtifactUpdated, run.ArtifactUpdated{Artifact: s.blobs.keep("<html>by hand</html>"), Cause: "edited"})
	s.begin(about(1), 1)
	s.end(about(1), "ok", 1)
	s.send()
	d := written(t, s)
	held := map[string]string{}
	require.NoError(t, filepath.Walk(d.Root, func(path string, info os.FileInfo, err error) error {
		if err == nil && filepath.Ext(path) == ".html" {
			raw, rerr := os.ReadFile(path)
			rel, _ := filepath.Rel(d.Root, path)
			held[rel], err = string(raw), rerr
		}
		return err
	}))
	require.Equal(t, map[string]string{
		"artifact.html": "<html>0011</html>",
		"_orchestrator/passes/pass-001/artifact-backup.html": "<html>by hand</html>",
		"_orchestrator/edits/before-7.html":                  "<html>seed</html>",
	}, held)
}

package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/invariants"
)

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return raw
}

// artifactOf is the digest of the run's artifact on disk.
func artifactOf(t *testing.T, dir string) string {
	t.Helper()
	return sum(read(t, filepath.Join(dir, "artifact.html")))
}

// eventsOf reads events.jsonl strictly: every line is JSON, seq runs from 1 without gaps, times never go back, nothing
// is left unterminated.
func eventsOf(t *testing.T, dir string) []run.Event {
	t.Helper()
	raw := read(t, filepath.Join(dir, rundir.EventsFile))
	require.True(t, bytes.HasSuffix(raw, []byte("\n")), "an unterminated tail: %q", raw[max(0, len(raw)-80):])
	out, err := invariants.Events(raw)
	require.NoError(t, err)
	return out
}

// of returns the payloads of one kind of event.
func of[P any](events []run.Event, kind run.Kind) []P {
	var out []P
	for _, e := range events {
		if e.Kind == kind {
			var p P
			e.Decode(&p)
			out = append(out, p)
		}
	}
	return out
}

func metaOf(t *testing.T, dir string) rundir.Meta {
	t.Helper()
	m, err := rundir.At(dir).Meta()
	require.NoError(t, err)
	return m
}

func stateOf(t *testing.T, dir string) rundir.PipelineState {
	t.Helper()
	s, err := rundir.Records(rundir.At(dir))
	require.NoError(t, err)
	return s
}

// statusIs reports whether the run on disk is of that status.
func statusIs(dir string, want run.Status) bool {
	m, err := rundir.At(dir).Meta()
	return err == nil && m.Status == string(want)
}

// tree is every file of a directory by its digest; run.lock and _orchestrator/unsynced, which are not records, are left
// out.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out, err := digests(dir)
	require.NoError(t, err)
	return out
}

// digests returns what [tree] returns. It leaves out temporary files; a directory that does not exist yet has no files.
func digests(dir string) (map[string]string, error) {
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if file == dir && errors.Is(err, fs.ErrNotExist) {
			return fs.SkipDir
		}
		if err != nil || e.IsDir() || e.Name() == rundir.LockFile || disk.IsTemp(e.Name()) {
			return err
		}
		if e.Type() == fs.ModeSymlink && e.Name() == rundir.WorkspaceDir {
			return ofWorkspace(file, out)
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) { // an agent that outlives its worker has removed it meanwhile
			return nil
		}
		out[filepath.ToSlash(name)] = sum(raw)
		return err
	})
	return out, err
}

// ofWorkspace adds the files of the workspace to which a directory leads, without its repository.
func ofWorkspace(link string, out map[string]string) error {
	to, err := os.Readlink(link)
	if err != nil {
		return err
	}
	files, err := digests(to)
	for name, digest := range files {
		if !strings.HasPrefix(name, ".git/") {
			out[rundir.WorkspaceDir+"/"+name] = digest
		}
	}
	return err
}

// sameTree wants two directories to hold the same files, byte for byte, and names those that differ.
func sameTree(t *testing.T, want, got map[string]string) {
	t.Helper()
	require.NoError(t, differences(want, got))
}

// complete requires a run that is done and whose files agree: invariants 1, 2, 3, 6 and 10 of recovery.
func complete(t *testing.T, dir string) []run.Event {
	t.Helper()
	now, err := look(dir, "")
	require.NoError(t, err)
	require.NotNil(t, now.Meta)
	require.Equal(t, string(run.Done), now.Meta.Status)
	require.Equal(t, "complete", now.Book.CurrentPhase)
	require.NoError(t, errors.Join(invariants.WholeLines(dir), costsAgree(dir, now), oneEnd(now)))
	last := now.Events[len(now.Events)-1]
	require.Equal(t, last.Seq, now.Meta.Events.Seq)
	require.Equal(t, last.Seq, now.Book.LastSeq)
	require.Equal(t, artifactOf(t, dir), now.Meta.State.Artifact.Digest)
	require.Equal(t, artifactOf(t, dir), now.Book.CurrentArtifactHash)
	return now.Events
}

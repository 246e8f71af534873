package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestThousandChecks checks directories while runs write to them, again and again: there is no false alarm. A run that
// is through before the thousandth check is followed by another.
func TestThousandChecks(t *testing.T) {
	t.Parallel()
	const wanted = 1000
	h := newEnv(t)
	checks, runs := 0, 0
	for ; checks < wanted; runs++ {
		dir := h.dir("run-" + string(rune('a'+runs)))
		h.spoil(slow("2", "0.5") + slow("5", "0.5") + slow("auditor-B-1", "0.5") + slow("weaver-1", "0.5"))
		require.NoError(t, os.RemoveAll(h.faults+".attempts"))
		h.begin(dir)
		for !statusIs(dir, run.Done) {
			clean(t, dir)
			checks++
		}
		clean(t, dir)
	}
	t.Logf("%d checks beside %d runs", checks, runs)
}

// clean wants a check to find nothing.
func clean(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, checked(dir))
}

// TestCheckReportsInjury hurts a run in its middle: the next check says what it is, and none does when it is mended.
func TestCheckReportsInjury(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("7", "600"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("007")
	for _, injury := range []struct {
		name, file, old, now string
		want                 fsck.Code
	}{
		{"one byte of a committed line", layout.EventsFile, `"kind":"phase.start"`, `"kind":"phase.stort"`,
			fsck.ChainMismatch},
		{"the status of meta.json", layout.MetaFile, `"status": "running"`, `"status": "done"`,
			fsck.TerminalMetaWithoutTerminalEvent},
	} {
		clean(t, dir)
		path := filepath.Join(dir, injury.file)
		whole := read(t, path)
		require.Contains(t, string(whole), injury.old)
		require.NoError(t, os.WriteFile(path, bytes.Replace(whole, []byte(injury.old), []byte(injury.now), 1), 0o600))
		r, err := fsck.Check(t.Context(), projector.At(dir).Dir, fsck.CheckOptions{})
		require.NoError(t, err)
		var codes []fsck.Code
		for _, i := range r.Issues {
			codes = append(codes, i.Code)
		}
		require.Contains(t, codes, injury.want, injury.name)
		require.False(t, r.OK, injury.name)
		require.NoError(t, os.WriteFile(path, whole, 0o600))
	}
	clean(t, dir)
}

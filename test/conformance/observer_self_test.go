package conformance

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestObserverDetectsPlantedFaults plants what must never happen, so that a row that finds nothing has looked.
func TestObserverDetectsPlantedFaults(t *testing.T) {
	t.Parallel()
	state := func(seq, saved, record string) string {
		return `{"lastSeq":` + seq + `,"lastSavedAt":"` + saved + `","passRecords":{"1":{"durationMs":` + record + `}}}`
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	for name, row := range map[string]struct {
		file, first, then string
		sees              func(s *observer) bool
	}{
		"half a state": {statePathIn, state("1", now, "1"), `{"lastSeq":2`,
			func(s *observer) bool { return len(s.partial) > 0 }},
		"a rewritten record": {statePathIn, state("1", now, "1"), state("2", now, "2"),
			func(s *observer) bool { return len(s.rewrote) > 0 }},
		"a shrunken log": {logs + "cost.jsonl", "one\ntwo\n", "one\n",
			func(s *observer) bool { return len(s.shrunk) > 0 }},
		"a rewritten log": {logs + "cost.jsonl", "one\ntwo\n", "two\none\nthree\n",
			func(s *observer) bool { return len(s.shrunk) > 0 }},
		"a file that is gone": {"notes.md", "one", "", func(s *observer) bool { return len(s.gone()) > 0 }},
		"an unlinked file": {"notes.md", "one", "",
			func(s *observer) bool { return !s.kernel.works || len(s.kernel.removed) == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, row.file)
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
			require.NoError(t, os.WriteFile(file, []byte(row.first), 0o600))
			s := watch(t, dir)
			s.await(t, file)
			if row.then == "" {
				require.NoError(t, os.Remove(file))
			} else {
				require.NoError(t, os.WriteFile(file, []byte(row.then), 0o600))
			}
			s.end()
			require.True(t, row.sees(s), "the watcher saw nothing")
		})
	}
}

// TestUnsyncedReplacementIsDetected gives the reader of traces one that is right; the wrong ones are told apart by its
// marks.
func TestUnsyncedReplacementIsDetected(t *testing.T) {
	t.Parallel()
	sync := `fsync(7</r/_orchestrator/state.json.tmp.1>) = 0` + "\n"
	rename := `renameat(AT_FDCWD, "/r/_orchestrator/state.json.tmp.1", AT_FDCWD, "/r/_orchestrator/state.json") = 0` +
		"\n"
	folder := `fsync(8</r/_orchestrator>) = 0` + "\n"
	for name, row := range map[string]struct {
		trace string
		want  string
	}{
		"right":                {sync + rename + folder + sync + rename + folder, ""},
		"the file not synced":  {rename + folder, "/r/_orchestrator/state.json.tmp.1 was renamed without a sync"},
		"the folder not":       {sync + rename + sync + rename + folder, "the folder was not synced after a rename"},
		"the folder, at last":  {sync + rename, "the folder was not synced after a rename"},
		"nothing was replaced": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, wrong := replacements(row.trace, "/r")
			require.Equal(t, row.want, wrong)
		})
	}
}

package conformance

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestObserverDetectsPlantedFaults plants one fault of each kind that rows require the observer not to find.
func TestObserverDetectsPlantedFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	state := func(seq, duration string) string {
		now := time.Now().UTC().Format(time.RFC3339Nano)
		return `{"lastSeq":` + seq + `,"lastSavedAt":"` + now + `","passRecords":{"1":{"durationMs":` + duration + `}}}`
	}
	write(statePathIn, state("1", "1"))
	write(logs+"cost.jsonl", "one\ntwo\n")
	write(logs+"errors.jsonl", "one\ntwo\n")
	write("notes.md", "one")
	s := observe(t, dir)
	s.await(t)
	write(statePathIn, state("2", "2"))
	write(logs+"cost.jsonl", "one\n")
	write(logs+"errors.jsonl", "two\none\nthree\n")
	require.NoError(t, os.Remove(filepath.Join(dir, "notes.md")))
	s.await(t)
	write(statePathIn, `{"lastSeq":3`)
	s.end()
	require.Contains(t, s.rewrote, "1")
	require.Subset(t, s.shrunk, []string{"cost.jsonl", "errors.jsonl"})
	require.Equal(t, []string{filepath.Join(dir, "notes.md")}, s.gone())
	require.NotEmpty(t, s.partial)
}

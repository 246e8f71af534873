package git

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestChangedSince changes files before and after a time, in the checkout and in commits.
func TestChangedSince(t *testing.T) {
	t.Parallel()
	const old = "2026-11-01T10:00:00Z"
	before := must(time.Parse(time.RFC3339, old))(t)
	since := before.Add(24 * time.Hour)
	dir := folder(t)
	commit := func(name, date string) {
		run(t, dir, "add", "--all")
		run(t, dir, "-c", "core.logAllRefUpdates=true", "commit", "-qm", name, "--date", date)
	}
	run(t, dir, "init", "-q")
	write(t, dir, files{"kept.txt": "1\n", "changed.txt": "1\n", "sub/removed.txt": "1\n", "dropped.txt": "1\n",
		"gone/early.txt": "1\n", ".gitignore": "*.log\n"})
	commit("first", old)
	first := run(t, dir, "rev-parse", "HEAD")
	erase(t, dir, "dropped.txt")
	commit("second", old)
	reflog := filepath.Join(dir, ".git", "logs", "HEAD")
	// the first commit was made before the time, the second one after it
	lines := must(os.ReadFile(reflog))(t)
	stamped := stampReflog(t, string(lines), before, since.Add(time.Hour))
	require.NoError(t, os.WriteFile(reflog, []byte(stamped), 0o644))
	write(t, dir, files{"draft.txt": "1\n", "old.txt": "1\n", "x.log": "1\n"})
	erase(t, dir, "gone/early.txt")
	erase(t, dir, "sub/removed.txt")
	for _, path := range []string{"kept.txt", "old.txt", ".gitignore", "gone", "."} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "gone"), 0o755))
		require.NoError(t, os.Chtimes(filepath.Join(dir, path), before, before))
	}
	r := must(Open(t.Context(), dir))(t)
	require.Equal(t, []string{"changed.txt", "draft.txt", "dropped.txt", "sub/removed.txt"}, must(r.ChangedSince(t.Context(), since))(t))
	require.Equal(t, first, must(r.CommitAt(t.Context(), since))(t))
	require.NotEqual(t, first, must(r.CommitAt(t.Context(), since.Add(2*time.Hour)))(t))
	run(t, dir, "checkout", "-q", "--orphan", "other")
	commit("third", old)
	require.Equal(t, run(t, dir, "rev-parse", "HEAD"), must(r.CommitAt(t.Context(), since))(t), "it is no ancestor")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git", "logs")))
	require.Equal(t, run(t, dir, "rev-parse", "HEAD"), must(r.CommitAt(t.Context(), since))(t), "there is no reflog")
}

// stampReflog sets the times of the entries of a reflog.
func stampReflog(t *testing.T, text string, times ...time.Time) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Len(t, lines, len(times))
	for i, line := range lines {
		head, message, _ := strings.Cut(line, "\t")
		fields := strings.Fields(head)
		fields[len(fields)-2] = strconv.FormatInt(times[i].Unix(), 10)
		lines[i] = strings.Join(fields, " ") + "\t" + message
	}
	return strings.Join(lines, "\n") + "\n"
}

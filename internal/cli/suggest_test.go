package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearestSuggestsSimilarWords(t *testing.T) {
	statuses := []string{"running", "paused", "done", "halted", "failed", "interrupted"}
	for word, want := range map[string][]string{
		"runing": {"running"}, "paues": {"paused"}, "dnoe": {"done"}, "DONE": {"done"}, "inter": {"interrupted"},
		"haltde": {"halted"}, "zzz": nil, "x": nil, "": nil,
	} {
		require.Equal(t, want, nearest(word, statuses), word)
	}
	require.Equal(t, []string{"aa", "ab", "ac"}, nearest("a", []string{"aa", "ab", "ac", "ad"}), "at most three")
}

func TestFilesOfAnotherUserNameTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("changing the owner needs root")
	}
	state := t.TempDir()
	require.NoError(t, os.Chown(state, 1, -1))
	denied := func(path string) error {
		return fmt.Errorf("x: %w", &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission})
	}
	require.Regexp(t, `^\. It belongs to user \S+: run the command as \S+, or set PASSBOOK_STATE_DIR`,
		hint(denied(filepath.Join(state, "console", "address")), state))
	require.Empty(t, hint(denied("/etc/shadow"), state))
	require.Empty(t, hint(&fs.PathError{Op: "open", Path: filepath.Join(state, "x"), Err: fs.ErrNotExist}, state))
}

func TestSlipsCountsTypingErrors(t *testing.T) {
	for _, row := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"kitten", "sitting", 3},
		{"größe", "grösse", 2}} {
		require.Equal(t, row.want, slips(row.a, row.b), "%s %s", row.a, row.b)
		require.Equal(t, row.want, slips(row.b, row.a), "%s %s", row.b, row.a)
	}
}

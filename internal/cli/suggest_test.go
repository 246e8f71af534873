package cli

import (
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

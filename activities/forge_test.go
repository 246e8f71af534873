package activities

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNothingIsMentioned: what agents write in a pull request neither calls an account nor closes an issue.
func TestNothingIsMentioned(t *testing.T) {
	for _, text := range []string{"@ada", "Fixes #5", "closes other/repository#5", "Fixes GH-5", "fixes gh-5",
		"Resolves https://forge.example.org/other/repository/issues/5", "see https://forge.example.org/a/b/pull/5"} {
		require.Contains(t, unmentioned(text), "\u200b", text)
	}
	require.Equal(t, "a # b, a @ b", unmentioned("a # b, a @ b"))
}

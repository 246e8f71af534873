package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPathsCoverWhatIsBelowFolders(t *testing.T) {
	for _, c := range []struct {
		path   string
		of     Paths
		folder bool
		covers bool
	}{
		{"test.sh", Paths{"test.sh"}, false, true},
		{"test.sh", Paths{"./test.sh"}, false, true},
		{"sub/test.sh", Paths{"test.sh"}, false, false},
		{"sub/test.sh", Paths{"**/test.sh"}, false, true},
		{"tests", Paths{"tests/"}, false, false},
		{"tests", Paths{"tests/"}, true, true},
		{"tests/deep/a", Paths{"tests/"}, false, true},
		{"tests/deep/a", Paths{"test*"}, false, true},
		{"a/b_test.go", Paths{"*_test.go"}, false, false},
		{"a/b.spec.js", Paths{"docs/", "**/*.{test,spec}.js"}, false, true},
		{"other", nil, false, false},
	} {
		require.Equal(t, c.covers, c.of.Covers(c.path, c.folder), "%s in %q", c.path, c.of)
	}
}

func TestPathWithManyAlternativesIsRefused(t *testing.T) {
	require.ErrorContains(t, CheckPath(strings.Repeat("{a,a,a}", 20)+"z"), "braces and commas")
	require.NoError(t, CheckPath("**/*.{test,spec}.{js,ts,jsx,tsx}"))
	require.NoError(t, CheckPath(strings.Repeat(",", 20)))
}

package calls

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTriesAreOrderedNumerically(t *testing.T) {
	want := []string{
		"calls/run-1/g0.035.1.-.1.abc/result", "calls/run-1/g0.035.1.-.2.abc/result",
		"calls/run-1/g0.035.1.-.10.abc/result",
		"calls/run-1/g0.035.1.-.r1-9.abc/result", "calls/run-1/g0.035.1.-.r1-10.abc/result",
		"calls/run-1/g0.035.1.-.r10-1.abc/result",
	}
	names := slices.Clone(want)
	slices.Sort(names)
	require.NotEqual(t, want, names)
	slices.SortFunc(names, byTry)
	require.Equal(t, want, names)
}

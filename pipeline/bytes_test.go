package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"1KB": 1000, "32MB": 32e6, "2GB": 2e9, "64MiB": 64 << 20, "1.5 GB": 15e8, "2000GB": 2e12, "1500KB": 15e5,
	} {
		got, err := parseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := parseSize(got.String())
		require.NoError(t, err)
		require.Equal(t, want, again)
	}
	for _, text := range []string{"", "32", "MB", "32 mb", "-1MB", "999B", "2TB", "1e3KB", "1KB ", "0.5MB", "1000000GB"} {
		_, err := parseSize(text)
		require.Error(t, err, text)
	}
	require.Equal(t, "1234567 bytes", Bytes(1234567).String())
}

// TestDefaultLimitsAreEqual: a plan has only the limits that its definition sets, like plans of older releases.
func TestDefaultLimitsAreEqual(t *testing.T) {
	unset := version(t, comparedSource)
	same := version(t, strings.Replace(comparedSource, "30m}", "30m, output: 32MB, tree: {size: 2GB, files: 100000}}", 1))
	other := version(t, strings.Replace(comparedSource, "30m}", "30m, output: 64MiB, tree: {size: 1.5GB, files: 9}}", 1))
	require.Empty(t, Compare(unset, same, Position{Round: 1}))
	var texts []string
	for _, d := range Compare(unset, other, Position{Round: 1}) {
		require.Empty(t, d.Refused)
		texts = append(texts, strings.Join(append(d.Path, d.Old, d.New), " "))
	}
	require.Contains(t, texts, "roles writer limits output 32MB 64MiB")
	require.Contains(t, texts, "roles writer limits tree size 2GB 1500MB")
	require.Contains(t, texts, "roles writer limits tree files 100000 9")
	require.Equal(t, defaultOutput, unset.Plan.RoleLimits(PlanStep{}, "writer").Output)
	require.Equal(t, TreeLimits{defaultTreeSize, defaultTreeFiles}, unset.Plan.RoleLimits(PlanStep{}, "writer").Tree)
	require.Equal(t, Bytes(64<<20), other.Plan.RoleLimits(PlanStep{}, "writer").Output)
}

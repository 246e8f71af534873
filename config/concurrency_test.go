package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBoundsAreDerivedFromTheHost(t *testing.T) {
	for _, row := range []struct {
		name string
		host Host
		want Concurrency
	}{
		{"two cores", Host{2, 8 * gib, 100 * gib}, Concurrency{8, 2, 2, 2, 16, 8, 32, 1000}},
		{"little memory and disk", Host{16, 3 * gib, 5 * gib},
			Concurrency{64, 16, 5, 3, 16, 64, 32, 1000}},
		{"hardly any", Host{1, gib / 4, gib / 2}, Concurrency{4, 1, 1, 1, 16, 4, 32, 1000}},
		{"unknown memory and disk", Host{Cores: 4}, Concurrency{16, 4, 4, 4, 16, 16, 32, 1000}},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, row.host.Concurrency()) })
	}
}

func TestThisHost(t *testing.T) {
	h := ThisHost(t.TempDir() + "/not/there/yet")
	require.Positive(t, h.Cores)
	require.Positive(t, h.Disk)
}

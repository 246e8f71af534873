package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBoundsAreDerivedFromTheHost(t *testing.T) {
	for _, row := range []struct {
		name string
		host Host
		set  Concurrency
		want Concurrency
	}{
		{"two cores", Host{2, 8 * gib, 100 * gib}, Concurrency{}, Concurrency{8, 2, 2, 2, 16, 8, 32, 1000}},
		{"little memory and disk", Host{16, 3 * gib, 5 * gib}, Concurrency{},
			Concurrency{64, 16, 5, 3, 16, 64, 32, 1000}},
		{"hardly any", Host{1, gib / 4, gib / 2}, Concurrency{}, Concurrency{4, 1, 1, 1, 16, 4, 32, 1000}},
		{"unknown memory and disk", Host{Cores: 4}, Concurrency{}, Concurrency{16, 4, 4, 4, 16, 16, 32, 1000}},
		{"settings", Host{2, 8 * gib, 100 * gib}, Concurrency{Checkouts: 7, Notices: 1},
			Concurrency{8, 2, 7, 2, 1, 8, 32, 1000}},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, row.set.On(row.host)) })
	}
}

func TestThisHost(t *testing.T) {
	h := ThisHost(t.TempDir() + "/not/there/yet")
	require.Positive(t, h.Cores)
	require.Positive(t, h.Disk)
}

func TestExplainShowsTheRuleOfABound(t *testing.T) {
	alone(t, "concurrency: {checkouts: 3}\n")
	all := must(Explain(flags(t)))(t)
	require.Contains(t, all, Setting{"concurrency.notices", "16", "default", "16"})
	for _, s := range all {
		if s.Name == "concurrency.checkouts" {
			require.Equal(t, "3", s.Value)
			require.Equal(t, "file", s.Source)
		}
		if s.Name == "concurrency.projections" {
			require.NotEqual(t, "0", s.Value)
			require.Equal(t, "4 per core", s.From)
		}
	}
}

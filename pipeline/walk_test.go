package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWalkers(t *testing.T) {
	p := corpusPlan(t)
	r, ok := p.Role("weaver")
	require.True(t, ok)
	require.Equal(t, "PA-05", r.Score.Name)
	_, ok = p.Role("nobody")
	require.False(t, ok)
	a, ok := p.Agent("")
	require.True(t, ok)
	require.Equal(t, "claude-json", a.Reply)
	_, ok = p.Agent("other")
	require.False(t, ok)
}

func TestRoundAt(t *testing.T) {
	p := corpusPlan(t)
	each, repeat := p.Stages[0], p.Stages[1]
	require.Equal(t, 7, each.MaxRounds())
	require.Equal(t, 6, repeat.MaxRounds())
	require.Equal(t, "S5", each.RoundAt(5).Set)
	require.Equal(t, "cp-S5", each.RoundAt(5).Checkpoint)
	require.Equal(t, "Grammar + Compositional Rules", each.RoundAt(5).Theme)
	require.Equal(t, "S7", each.RoundAt(7).Set, "the last one")
	require.Equal(t, repeat.Rounds[0], repeat.RoundAt(6))
	for _, n := range []int{-1, 0, 8} {
		require.Empty(t, each.RoundAt(n).Steps, n)
	}
	require.Equal(t, repeat.Rounds[0], repeat.RoundAt(7), "an operator may ask for one more")
}

func TestFill(t *testing.T) {
	for name, c := range map[string]struct {
		template, set string
		n             int
		want          string
	}{
		"a set":           {"cp-{set}", "S3", 0, "cp-S3"},
		"a round":         {"screenshots/cycle-{n}", "", 2, "screenshots/cycle-2"},
		"both":            {"{set}-{n}-{n}", "S1", 4, "S1-4-4"},
		"nothing to fill": {"cp-{set}-{n}", "", 0, "cp-{set}-{n}"},
		"once only":       {"{set}", "{n}", 1, "{n}"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Fill(c.template, c.set, c.n)) })
	}
}

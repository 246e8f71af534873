package price

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

func TestKnownPrices(t *testing.T) {
	for _, row := range Known() {
		_, err := time.Parse(time.DateOnly, row.Date)
		require.NoError(t, err, row.Pattern)
		p := row.Price
		require.True(t, 0 < p.CacheRead && p.CacheRead < p.Input && p.Input <= p.CacheWrite && p.Input < p.Output,
			row.Pattern)
	}
}

func TestModelIsFound(t *testing.T) {
	for model, input := range map[string]float64{
		"claude-opus-5-5": 4, "claude-opus-4-5-20251101": 5, "claude-opus-5-5[1m]": 4, "gpt-5.4-2026-03-05": 2.5,
		"gpt-5.1-codex": 1.25, "gpt-5.1-codex-mini": 0.25, "gemini-2.5-flash-lite": 0.1, "gpt-5-latest": 1.25,
		"gpt-9": 0, "claude-opus-9": 0, "": 0, "gpt-5.1-codex-new": 0,
	} {
		p, ok := Known().Find(model)
		require.Equal(t, input > 0, ok, model)
		require.InDelta(t, input, p.Input, 1e-9, model)
	}
}

// TestCostEqualsThatOfClaude compares costs that claude 2.1.330 reported for the same tokens.
func TestCostEqualsThatOfClaude(t *testing.T) {
	opus, _ := Known().Find("claude-opus-5-5")
	sonnet, _ := Known().Find("claude-sonnet-5-5")
	used := run.Tokens{Input: 1000, Output: 200, CacheRead: 3000, CacheWrite: 400}
	require.InDelta(t, 0.0106, opus.Cost(used), 1e-9)
	require.InDelta(t, 0.0053, sonnet.Cost(used), 1e-9)
	require.InDelta(t, 0.019661, opus.Cost(run.Tokens{Input: 1234, Output: 567, CacheRead: 8900, CacheWrite: 321}), 1e-9)
}

func TestPriceWithoutCacheUsesShares(t *testing.T) {
	require.Equal(t, Price{Input: 10, Output: 50, CacheRead: 1, CacheWrite: 12.5}, Of(10, 50, 0, 0))
	require.Equal(t, Price{Input: 10, Output: 50, CacheRead: 2, CacheWrite: 3}, Of(10, 50, 2, 3))
}

func TestDamagedListIsRefused(t *testing.T) {
	for line, want := range map[string]string{
		"gpt-5 1 2 3 2026-11-24": `price "gpt-5 1 2 3": write MODEL INPUT OUTPUT, or MODEL INPUT OUTPUT CACHE_READ ` +
			`CACHE_WRITE`,
		"gpt-5 1 2 x 4 2026-11-24\n":    "price of gpt-5: x is not a number of USD from 0 to 1000000",
		"gpt-5 1 -2 2026-11-24":         "price of gpt-5: -2 is not a number of USD from 0 to 1000000",
		"gpt-5 NaN 2 2026-11-24":        "price of gpt-5: NaN is not a number of USD from 0 to 1000000",
		"gpt-5 1e9 2 2026-11-24":        "price of gpt-5: 1e9 is not a number of USD from 0 to 1000000",
		"gpt-[5 1 2 0.1 3 2026-11-24\n": "price of gpt-[5: the pattern is malformed; use *, ? and [a-z]",
	} {
		_, err := parse(line)
		require.EqualError(t, err, want)
	}
}

func TestPriceOfOneLine(t *testing.T) {
	row, err := ParseRow(" own-*  10 50 ")
	require.NoError(t, err)
	require.Equal(t, Row{Pattern: "own-*", Price: Of(10, 50, 0, 0)}, row)
	row, err = ParseRow("own-* 10 50 0 12")
	require.NoError(t, err)
	require.Equal(t, Price{Input: 10, Output: 50, CacheWrite: 12}, row.Price, "reading the cache costs nothing")
}

// Prices of the settings count before those of the list, also for known models.
func TestOwnPricesCountFirst(t *testing.T) {
	listed, known := Known().Find("claude-opus-5")
	require.True(t, known)
	own, known := With([]string{"malformed", "claude-opus-* 10 9", "mine 1 2 3 4"}).Find("claude-opus-5")
	require.True(t, known)
	require.Equal(t, Price{Input: 10, Output: 9, CacheRead: 1, CacheWrite: 12.5}, own)
	require.NotEqual(t, listed, own)
	mine, known := With([]string{"mine 1 2 3 4"}).Find("mine")
	require.True(t, known)
	require.Equal(t, Price{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, mine)
	same, _ := With([]string{"mine 1 2"}).Find("claude-opus-5")
	require.Equal(t, listed, same)
}

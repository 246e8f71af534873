package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/price"
)

func TestOwnPricesPrecedeListPrices(t *testing.T) {
	alone(t, "prices:\n  - gpt-5.6  1 2\n  - own-*  3 4 0 5\n")
	s := must(Load(nil))(t)
	for model, want := range map[string]price.Price{
		"gpt-5.6": price.Of(1, 2, 0, 0), "gpt-5.6-2026-07-24": price.Of(1, 2, 0, 0),
		"own-large": {Input: 3, Output: 4, CacheWrite: 5},
	} {
		got, ok := price.With(s.Prices).Find(model)
		require.True(t, ok, model)
		require.Equal(t, want, got, model)
	}
	_, ok := price.With(s.Prices).Find("claude-opus-5-5")
	require.True(t, ok, "the list prices follow")
}

// TestWrongPricesAreReportedWithTheirPlace reports all at once.
func TestWrongPricesAreReportedWithTheirPlace(t *testing.T) {
	const wrong = "calls: 4\nprices:\n  - gpt-5.6 1\n  - own-1 1 2\n  - own-2 1 x\n  - own-1 3 4\n"
	alone(t, wrong)
	dir := must(os.UserConfigDir())(t)
	file := filepath.Join(dir, "passbook", "config.yaml")
	_, err := Load(nil)
	for _, want := range []string{
		file + `:3: prices: price "gpt-5.6 1": write MODEL INPUT OUTPUT`, file + ":5: prices: price of own-2: x is not",
		file + ":6: prices: price of own-1: it is there twice; remove one",
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = Explain(nil)
	require.ErrorContains(t, err, file+":3: prices")

	alone(t, strings.NewReplacer("prices:", "prices: |", "- ", "").Replace(wrong))
	_, err = Load(nil)
	require.ErrorContains(t, err, ":5: prices: price of own-2", "in a text with one price on each line")
	t.Setenv("PASSBOOK_PRICES", "own-1 1 2\nown-2 1")
	_, err = Load(nil)
	require.ErrorContains(t, err, "PASSBOOK_PRICES, line 2: prices: ")
	_, err = Load(flags(t, "--prices", "own-1"))
	require.ErrorContains(t, err, "--prices, line 1: prices: ")
}

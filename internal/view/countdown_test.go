package view_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// TestCountdown follows the wait of a run whose account wakes it at the reset, and without the account 5 minutes later.
func TestCountdown(t *testing.T) {
	reset := time.Date(2026, 11, 25, 6, 33, 0, 0, time.UTC)
	limited := func(number int64) *run.Limited {
		call := run.LimitedCall{Until: run.Time(reset.Add(6 * time.Minute))}
		call.Reset, call.Number = run.Time(reset), number
		return run.NewLimited([]run.LimitedCall{call})
	}
	for _, row := range []struct {
		now    time.Duration // after the reset
		number int64
		want   string
	}{
		{-2 * time.Hour, 1, ", in 2h 0m"},
		{time.Minute, 1, ", called again within 5m 0s"},
		{7 * time.Minute, 1, ""},
		{time.Minute, 0, ", in 5m 0s"},
	} {
		require.Equal(t, row.want, view.Countdown(limited(row.number), run.Clock{Now: reset.Add(row.now)}), row)
	}
	require.Empty(t, view.Countdown(limited(1), run.Clock{}))
}

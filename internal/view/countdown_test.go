package view_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

func TestCountdown(t *testing.T) {
	until := time.Date(2026, 11, 25, 6, 33, 0, 0, time.UTC)
	l := run.NewLimited([]run.LimitedCall{{Until: run.Time(until)}})
	require.Equal(t, ", in 2h 0m", view.Countdown(l, run.Clock{Now: until.Add(-2 * time.Hour)}))
	require.Empty(t, view.Countdown(l, run.Clock{Now: until.Add(time.Minute)}))
	require.Empty(t, view.Countdown(l, run.Clock{}))
}

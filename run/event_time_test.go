package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Milliseconds accepts the same times as time.Parse and no others.
func TestMillisecondsMatchTimeParse(t *testing.T) {
	for _, ts := range []string{
		"2026-08-01T12:34:56.789Z", "1970-01-01T00:00:00.000Z", "0001-01-01T00:00:00.001Z", "2024-02-29T23:59:59.999Z",
		"2023-02-29T00:00:00.000Z", "2026-13-01T00:00:00.000Z", "2026-00-10T00:00:00.000Z", "2026-01-00T00:00:00.000Z",
		"2026-01-01T24:00:00.000Z", "2026-01-01T23:60:00.000Z", "2026-01-01T23:59:60.000Z", "2026-01-01T00:00:00,000Z",
		"2026-01-01T00:00:00.000z", "2026-01-01 00:00:00.000Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000+01:00",
		"2026-1a-01T00:00:00.000Z", "", "not a time", "-026-01-01T00:00:00.000Z",
	} {
		want, err := time.Parse(TimeFormat, ts)
		got, ok := milliseconds(ts)
		require.Equal(t, err == nil, ok, ts)
		if ok {
			require.Equal(t, want.UnixMilli(), got, ts)
		}
	}
}

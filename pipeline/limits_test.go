package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDelay(t *testing.T) {
	s := time.Second
	for name, c := range map[string]struct {
		rateLimited bool
		attempt     int
		rnd         float64
		want        time.Duration
	}{
		"after the first":              {false, 1, 0, 5 * s},
		"after the second":             {false, 2, 0, 10 * s},
		"with all the jitter":          {false, 2, 1, 12 * s},
		"with half the jitter":         {false, 1, 0.5, 5500 * time.Millisecond},
		"at the cap":                   {false, 6, 0, 120 * s},
		"no jitter above the cap":      {false, 6, 1, 120 * s},
		"after very many":              {false, 10000, 1, 120 * s},
		"overloaded, after the first":  {true, 1, 0, 60 * s},
		"overloaded, after the third":  {true, 3, 0, 240 * s},
		"overloaded, after the fourth": {true, 4, 1, 300 * s},
		"before any":                   {false, 0, 0, 5 * s},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, defaultLimits().Delay(c.rateLimited, c.attempt, c.rnd))
		})
	}
}

func TestTimeoutForGrowsFromTheThirdAttempt(t *testing.T) {
	l := Limits{Timeout: 200 * time.Millisecond}
	for attempt, want := range map[int]time.Duration{1: 200, 2: 200, 3: 300, 4: 300} {
		require.Equal(t, want*time.Millisecond, l.TimeoutFor(attempt), attempt)
	}
}

func TestAttemptsFor(t *testing.T) {
	require.Equal(t, 3, defaultLimits().AttemptsFor(false))
	require.Equal(t, 5, defaultLimits().AttemptsFor(true))
}

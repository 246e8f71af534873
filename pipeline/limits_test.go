package pipeline

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDelay(t *testing.T) {
	s := time.Second
	for name, c := range map[string]struct {
		attempt int
		rnd     float64
		want    time.Duration
	}{
		"after the first":       {1, 0, 5 * s},
		"after the second":      {2, 0, 10 * s},
		"with all the jitter":   {2, 1, 12 * s},
		"with half the jitter":  {1, 0.5, 5500 * time.Millisecond},
		"at the cap":            {6, 0, 120 * s},
		"no jitter above a cap": {6, 1, 120 * s},
		"after very many":       {10000, 1, 120 * s},
		"before any":            {0, 0, 5 * s},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, defaultLimits().Delay(c.attempt, c.rnd))
		})
	}
}

// defaultLimits are those of a definition that sets none.
func defaultLimits() (l Limits) {
	setDefaults(reflect.ValueOf(&l).Elem())
	return l
}

func TestLimitWait(t *testing.T) {
	s, m, h := time.Second, time.Minute, time.Hour
	short := Limits{
		Wait: Waits{First: s}, UnknownReset: Waits{First: 2 * s, Max: 3 * s},
		AfterReset: Span{Min: 100 * time.Millisecond, Max: 200 * time.Millisecond},
	}
	for name, c := range map[string]struct {
		limits     Limits
		temporary  bool
		n          int
		reset      time.Duration
		rnd, scale float64
		want       time.Duration
	}{
		"a reset, the shortest addition": {Limits{}, false, 1, 3 * h, 0, 1, 3*h + 10*s},
		"a reset, the longest addition":  {Limits{}, false, 7, 3 * h, 1, 1, 3*h + m},
		"only the addition is scaled":    {Limits{}, false, 1, 3 * h, 1, 0.1, 3*h + 6*s},
		"a reset in days":                {Limits{}, false, 1, 100 * h, 0, 1, 100*h + 10*s},
		"an unknown reset, first":        {Limits{}, false, 1, 0, 1, 1, 15 * m},
		"an unknown reset, second":       {Limits{}, false, 2, 0, 1, 1, 30 * m},
		"an unknown reset, third":        {Limits{}, false, 3, 0, 1, 1, h},
		"an unknown reset, then hourly":  {Limits{}, false, 1000, 0, 1, 1, h},
		"temporary, first":               {Limits{}, true, 1, 0, 1, 1, 30 * s},
		"temporary, fifth":               {Limits{}, true, 5, 0, 1, 1, 8 * m},
		"temporary, then the longest":    {Limits{}, true, 1 << 30, 0, 1, 1, 15 * m},
		"temporary, scaled":              {Limits{}, true, 1, 0, 1, 0.01, 300 * time.Millisecond},
		"retry after more":               {Limits{}, true, 1, 2 * m, 1, 1, 2 * m},
		"retry after less":               {Limits{}, true, 2, 8200 * time.Millisecond, 1, 1, 8200 * time.Millisecond},
		"retry after less, third":        {Limits{}, true, 3, 8200 * time.Millisecond, 1, 1, 2 * m},
		"own first wait":                 {short, true, 1, 0, 1, 1, s},
		"own first wait, default max":    {short, true, 99, 0, 1, 1, 15 * m},
		"own waits for a reset":          {short, false, 2, 0, 1, 1, 3 * s},
		"own addition":                   {short, false, 1, 2 * s, 1, 1, 2200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, c.limits.LimitWait(c.temporary, c.n, c.reset, c.rnd, c.scale))
		})
	}
}

func TestTimeoutForGrowsFromTheThirdAttempt(t *testing.T) {
	l := Limits{Timeout: 200 * time.Millisecond}
	for attempt, want := range map[int]time.Duration{1: 200, 2: 200, 3: 300, 4: 300} {
		require.Equal(t, want*time.Millisecond, l.TimeoutFor(attempt), attempt)
	}
}

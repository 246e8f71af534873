package pipeline

import (
	"math"
	"time"
)

// Delay returns the wait after failed attempt n, from 1: min(first * factor^(n-1) * (1 + jitter*rnd), max), in whole
// milliseconds. rnd is from 0 to 1. With rateLimited, first and max of the rate limit apply. The caller applies
// TimeScale: logs contain the unscaled wait.
func (l Limits) Delay(rateLimited bool, attempt int, rnd float64) time.Duration {
	first, most := l.Backoff.First, l.Backoff.Max
	if rateLimited {
		first, most = l.RateLimit.First, l.RateLimit.Max
	}
	wait := float64(first) * math.Pow(l.Backoff.Factor, float64(max(attempt, 1)-1)) * (1 + l.Backoff.Jitter*rnd)
	if !(wait < float64(most)) {
		return most
	}
	return time.Duration(wait).Round(time.Millisecond)
}

// AttemptsFor returns the maximum number of attempts, with or without an overloaded provider.
func (l Limits) AttemptsFor(rateLimited bool) int {
	if rateLimited {
		return l.RateLimit.Attempts
	}
	return l.Attempts
}

// TimeoutFor returns the timeout of attempt n, from 1: T, T, then 1.5 T from the third attempt.
func (l Limits) TimeoutFor(attempt int) time.Duration {
	if attempt >= 3 {
		return l.Timeout + l.Timeout/2
	}
	return l.Timeout
}

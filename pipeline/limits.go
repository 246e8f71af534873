package pipeline

import (
	"cmp"
	"math"
	"time"
)

// Delay returns the wait after failed attempt n, from 1: min(first * factor^(n-1) * (1 + jitter*rnd), max), in whole
// milliseconds. rnd is from 0 to 1. The caller applies TimeScale: logs contain the unscaled wait.
func (l Limits) Delay(attempt int, rnd float64) time.Duration {
	first, most := l.Backoff.First, l.Backoff.Max
	wait := float64(first) * math.Pow(l.Backoff.Factor, float64(max(attempt, 1)-1)) * (1 + l.Backoff.Jitter*rnd)
	if !(wait < float64(most)) {
		return most
	}
	return time.Duration(wait).Round(time.Millisecond)
}

// LimitWait returns the wait after consecutive limit n of a provider, from 1. reset is the time until the reset that it
// reported; 0: none. temporary: the provider is expected to answer soon; a shorter wait that it reports counts at its
// first two limits in a row. rnd is from 0 to 1. The caller applies scale before a reset is added to.
func (l Limits) LimitWait(temporary bool, n int, reset time.Duration, rnd, scale float64) time.Duration {
	l = l.Complete()
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) * scale).Round(time.Millisecond) }
	add := scaled(l.AfterReset.Min + time.Duration(rnd*float64(l.AfterReset.Max-l.AfterReset.Min)))
	switch {
	case temporary && reset > 0 && n <= 2:
		return reset
	case temporary:
		return max(reset, scaled(l.Wait.after(n)))
	case reset > 0:
		return reset + add
	}
	return scaled(l.UnknownReset.after(n))
}

// after returns the wait after n limits.
func (w Waits) after(n int) time.Duration {
	wait := w.First
	for range n - 1 {
		if wait >= w.Max {
			break
		}
		wait *= 2
	}
	return min(wait, w.Max)
}

// TimeoutFor returns the timeout of attempt n, from 1: T, T, then 1.5 T from the third attempt.
func (l Limits) TimeoutFor(attempt int) time.Duration {
	if attempt >= 3 {
		return l.Timeout + l.Timeout/2
	}
	return l.Timeout
}

// Defaults of the limits that a plan has only if its definition sets them.
const (
	defaultOutput    Bytes = 32e6
	defaultTreeSize  Bytes = 2e9
	defaultTreeFiles       = 100_000
)

// Complete returns the limits with all defaults. A plan has some limits only if its definition sets them: plans of
// releases without these limits are the same.
func (l Limits) Complete() Limits {
	l.Output = cmp.Or(l.Output, defaultOutput)
	l.Tree.Size = cmp.Or(l.Tree.Size, defaultTreeSize)
	l.Tree.Files = cmp.Or(l.Tree.Files, defaultTreeFiles)
	l.Wait = l.Wait.or(30*time.Second, 15*time.Minute)
	l.MaxWait = cmp.Or(l.MaxWait, 12*time.Hour)
	l.UnknownReset = l.UnknownReset.or(15*time.Minute, time.Hour)
	span := Waits{First: l.AfterReset.Min, Max: l.AfterReset.Max}.or(10*time.Second, time.Minute)
	l.AfterReset = Span{Min: span.First, Max: span.Max}
	return l
}

// or returns the waits with defaults.
func (w Waits) or(first, most time.Duration) Waits {
	return Waits{First: cmp.Or(w.First, first), Max: cmp.Or(w.Max, most)}
}

// TreeLimits returns the strictest limits of the workspace that a pass leaves. Zero: no pass changes the workspace.
func (p *Plan) TreeLimits() (strictest TreeLimits) {
	for _, stage := range p.Stages {
		for _, round := range stage.Rounds {
			for _, step := range round.Steps {
				for _, name := range append([]string{step.Role}, step.Members...) {
					if r, ok := p.Role(name); ok && r.Gives == GivesChanges {
						strictest = strictest.and(p.RoleLimits(step, name).Tree)
					}
				}
			}
		}
	}
	return strictest
}

func (l TreeLimits) and(other TreeLimits) TreeLimits {
	if l == (TreeLimits{}) {
		return other
	}
	return TreeLimits{Size: min(l.Size, other.Size), Files: min(l.Files, other.Files)}
}

package pipeline

import (
	"cmp"
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

// Defaults of the limits of what a pass leaves.
const (
	defaultOutput    Bytes = 32e6
	defaultTreeSize  Bytes = 2e9
	defaultTreeFiles       = 100_000
)

// Complete returns the limits with the defaults of what a pass may leave. A plan has only those that its definition
// sets: plans of releases without these limits are the same.
func (l Limits) Complete() Limits {
	l.Output = cmp.Or(l.Output, defaultOutput)
	l.Tree.Size = cmp.Or(l.Tree.Size, defaultTreeSize)
	l.Tree.Files = cmp.Or(l.Tree.Files, defaultTreeFiles)
	return l
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

package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
)

// A limit of a provider stops the lanes whose calls meet it; the others continue. When no lane can work, the run waits
// as any other does: run.limited has the calls of all lanes.

// limitedBefore returns the last wait of a call for a limit.
func (e *engine) limitedBefore(member string) run.LimitedCall {
	if e.lane != nil {
		for _, c := range e.limits {
			if c.Lane == e.lane.key && c.Member == member {
				return c
			}
		}
	}
	return e.j.state.Limited.Call(member)
}

// keepLimits keeps the calls of a step that wait for a limit.
func (e *engine) keepLimits(all []*pass) {
	e.lane.limited = true
	for _, p := range all {
		if p.waits() {
			p.forgetLimit()
			c := p.waiting
			c.Lane = e.lane.key
			e.limits = append(slices.Clone(e.limits), c)
		}
	}
}

// forgetLimit forgets the limit of a call in a lane: its provider answers.
func (p *pass) forgetLimit() {
	if p.e.lane == nil {
		return
	}
	p.e.limits = slices.DeleteFunc(slices.Clone(p.e.limits), func(c run.LimitedCall) bool {
		return c.Lane == p.e.lane.key && c.Member == p.member
	})
}

// limitedLane reports whether all calls of a lane's step still wait.
func (e *engine) limitedLane(ctx workflow.Context, key string) bool {
	now, waits := run.Time(workflow.Now(ctx)), false
	for _, c := range append(e.j.state.Limited.InLane(key).Calls(), e.limits...) {
		if c.Lane != key || c.N == 0 {
			continue
		}
		if waits = c.Until > now; !waits {
			return false
		}
	}
	return waits
}

// nextLimit is when the first call of a lane may be made again; zero: none waits.
func (e *engine) nextLimit() time.Time {
	next := ""
	for _, c := range e.limits {
		if c.Until != "" && (next == "" || c.Until < next) {
			next = c.Until
		}
	}
	at, err := time.Parse(run.TimeFormat, next)
	if err != nil {
		return time.Time{}
	}
	return at
}

// suspendLanes makes the run wait for the limits of its lanes, if there are any.
func (e *engine) suspendLanes(ctx workflow.Context) (bool, error) {
	calls := slices.DeleteFunc(slices.Clone(e.limits), func(c run.LimitedCall) bool { return c.N == 0 })
	for _, c := range e.j.state.Limited.Calls() {
		same := func(other run.LimitedCall) bool { return other.Lane == c.Lane && other.Member == c.Member }
		if c.N > 0 && c.Until != "" && !slices.ContainsFunc(calls, same) {
			calls = append(calls, c)
		}
	}
	calls = slices.DeleteFunc(calls, func(c run.LimitedCall) bool {
		l, active := e.j.state.Lane(c.Lane)
		return !active || l.Waiting != nil
	})
	e.limits = nil
	if len(calls) == 0 {
		return false, nil
	}
	together(calls)
	return true, e.j.emit(ctx, run.KindRunLimited, e.round.Stage, run.RunLimited{Limited: *run.NewLimited(calls)})
}

// together lets calls that met the same limit wait for the same time: the first of theirs.
func together(calls []run.LimitedCall) {
	for i := range calls {
		for _, other := range calls {
			a, b := calls[i].Limit, other.Limit
			a.Again, b.Again = "", ""
			if a == b {
				calls[i].Until = min(calls[i].Until, other.Until)
			}
		}
	}
}

// lanesCarried are the limits and the used attempts of calls of lanes, for the next execution.
func (e *engine) lanesCarried() []run.LimitedCall {
	all := slices.Clone(e.limits)
	for _, l := range e.lanes {
		for _, p := range l.passes {
			same := func(c run.LimitedCall) bool { return c.Lane == l.lane.key && c.Member == p.member }
			if p.attempt > 0 && p.result == nil && !slices.ContainsFunc(all, same) {
				all = append(all, run.LimitedCall{Lane: l.lane.key, Member: p.member, AttemptsUsed: p.attempt})
			}
		}
	}
	return all
}

package pipeline

import (
	"time"
)

func defaultLimits() Limits {
	return Limits{
		Timeout:    10 * time.Minute,
		Attempts:   3,
		Structural: 2,
		Backoff:    Backoff{First: 5 * time.Second, Factor: 2, Max: 2 * time.Minute, Jitter: 0.2},
		RateLimit:  RateLimit{Attempts: 5, First: time.Minute, Max: 5 * time.Minute},
		TimeScale:  1,
	}
}

// limits lays o's `limits` over base. extra names keys that only this place may have.
func (d *decoder) limits(o object, base Limits, extra ...string) Limits {
	n := o.values["limits"]
	if n == nil {
		return base
	}
	known := append([]string{"timeout", "attempts", "structural", "backoff", "rate_limit"}, extra...)
	l, _ := d.object(n, o.at("limits"), known...)
	l.duration("timeout", &base.Timeout)
	l.whole("attempts", &base.Attempts, 1, 20)
	l.whole("structural", &base.Structural, 1, 20)
	l.number("time_scale", &base.TimeScale, 0.000001, 1000)
	d.backoff(l, &base.Backoff)
	d.rateLimit(l, &base.RateLimit)
	return base
}

func (d *decoder) backoff(l object, b *Backoff) {
	n := l.values["backoff"]
	if n == nil {
		return
	}
	o, _ := d.object(n, l.at("backoff"), "first", "factor", "max", "jitter")
	o.duration("first", &b.First)
	o.number("factor", &b.Factor, 1, 100)
	o.duration("max", &b.Max)
	o.number("jitter", &b.Jitter, 0, 1)
	d.ascending(o, b.First, b.Max)
}

func (d *decoder) rateLimit(l object, r *RateLimit) {
	n := l.values["rate_limit"]
	if n == nil {
		return
	}
	o, _ := d.object(n, l.at("rate_limit"), "attempts", "first", "max")
	o.whole("attempts", &r.Attempts, 1, 20)
	o.duration("first", &r.First)
	o.duration("max", &r.Max)
	d.ascending(o, r.First, r.Max)
}

func (d *decoder) ascending(o object, first, most time.Duration) {
	if first > most {
		d.problem(o.node, "%s waits %s first and at most %s; write a max that is not below first", o.path, first, most)
	}
}

func (d *decoder) budget(o object) {
	d.def.Budget.WarnAt = 0.8
	n := o.values["budget"]
	if n == nil {
		return
	}
	b, _ := d.object(n, "budget", "usd", "warn_at")
	if b.need("usd", "usd: what a run may spend") != nil {
		b.number("usd", &d.def.Budget.USD, 0, 1e9)
	}
	b.number("warn_at", &d.def.Budget.WarnAt, 0.01, 1)
}

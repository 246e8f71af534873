package host

import (
	"sync"
	"time"

	"github.com/passbook-run/passbook/run"
)

// maxSets bounds the sets of values of the labels pipeline, role and model. Later sets count as other.
const maxSets = 200

const other = "other"

// sets are the values of labels that people choose.
type sets struct {
	mu   sync.Mutex
	seen map[[3]string]bool
}

func (s *sets) bounded(pipeline, role, model string) (string, string, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := [3]string{pipeline, role, model}
	if !s.seen[set] && len(s.seen) >= maxSets {
		return other, other, other
	}
	s.seen[set] = true
	return pipeline, role, model
}

// Projected counts events that were written to a run directory at a moment. A nil Metrics counts nothing.
func (m *Metrics) Projected(pipeline string, events []run.Event, now time.Time) {
	if m == nil || len(events) == 0 {
		return
	}
	if at, err := time.Parse(run.TimeFormat, events[0].TS); err == nil {
		m.lag.Observe(max(0, now.Sub(at).Seconds()))
	}
	for _, e := range events {
		switch e.Kind {
		case run.KindPassAttempt:
			p := run.PayloadOf[run.PassAttempt](e)
			uncalled := p.Limit != nil && !p.Judged // the limit was known
			if p.Late == 0 && !uncalled {           // a superseded answer is not a further outcome
				m.ends(pipeline, p.Pass, p.Category, p.DurationMS, modelOf(p.Spend))
			}
			if p.Spend != nil {
				m.spent(pipeline, p.Pass, *p.Spend)
			}
		case run.KindPassEnd:
			p := run.PayloadOf[run.PassEnd](e)
			if !p.Attempted { // else its attempt was counted
				m.ends(pipeline, p.Pass, p.Outcome, p.DurationMS, p.Spend.Model)
			}
			m.spent(pipeline, p.Pass, p.Spend)
		case run.KindRunEnd:
			m.ended.WithLabelValues(string(run.PayloadOf[run.RunEnd](e).Status)).Inc()
		}
	}
}

func modelOf(s *run.Spend) string {
	if s == nil {
		return ""
	}
	return s.Model
}

func (m *Metrics) ends(pipeline string, p run.Pass, outcome run.Category, ms int64, model string) {
	_, role, _ := m.sets.bounded(pipeline, p.Role, model)
	m.results.WithLabelValues(role, string(outcome)).Inc()
	m.duration.WithLabelValues(role).Observe((time.Duration(ms) * time.Millisecond).Seconds())
}

func (m *Metrics) spent(pipeline string, p run.Pass, s run.Spend) {
	if !s.Asked() {
		return
	}
	pipeline, role, model := m.sets.bounded(pipeline, p.Role, s.Model)
	m.costs.WithLabelValues(pipeline, role, model).Add(max(0, s.USD))
	for kind, n := range map[string]int64{
		"input": s.Tokens.Input, "output": s.Tokens.Output, "cache_read": s.Tokens.CacheRead,
		"cache_write": s.Tokens.CacheWrite,
	} {
		m.tokens.WithLabelValues(pipeline, role, model, kind).Add(float64(max(0, n)))
	}
}

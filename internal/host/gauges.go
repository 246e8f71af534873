package host

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/passbook-run/passbook/internal/volume"
)

// Sources are asked for the values of gauges at each request. Nil ones have no values.
type Sources struct {
	Calls   func() []CallGauge
	Slots   int
	Limits  func() []AccountLimit
	Folders map[string]string // paths by name
}

// Call is a running call.
type CallGauge struct{ Account, Program string }

// Limit is the limit of an account that is in force.
type AccountLimit struct {
	Account, Kind string
	Reset         time.Time
}

// Polled is what the Temporal server answered last.
type Polled struct {
	Up     bool
	Queues []QueueGauge
	Runs   map[string]int64 // open runs by status
}

// Queue is a task queue that this worker polls.
type QueueGauge struct {
	Name  string
	Tasks int64
	Age   time.Duration // of the oldest task
}

// Use sets the sources.
func (m *Metrics) Use(s Sources) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sources = s
}

// Polled replaces what is known of the server.
func (m *Metrics) Polled(p Polled) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.polled = p
}

// atRequest collects the gauges.
type atRequest struct{ *Metrics }

func (r row) desc() *prometheus.Desc { return prometheus.NewDesc(r.name, r.help, r.labels, nil) }

func (atRequest) Describe(ch chan<- *prometheus.Desc) {
	for _, r := range []row{callsRunning, slots, openRuns, limited, backlog, age, serverUp, diskFree} {
		ch <- r.desc()
	}
}

func (a atRequest) Collect(ch chan<- prometheus.Metric) {
	a.mu.Lock()
	s, p := a.sources, a.polled
	a.mu.Unlock()
	set := func(r row, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(r.desc(), prometheus.GaugeValue, value, labels...)
	}
	if s.Calls != nil {
		counts := map[CallGauge]float64{}
		for _, c := range s.Calls() {
			counts[c]++
		}
		for c, n := range counts {
			set(callsRunning, n, c.Account, c.Program)
		}
		set(slots, float64(s.Slots))
	}
	if s.Limits != nil {
		for _, l := range s.Limits() {
			set(limited, float64(l.Reset.UnixMilli())/1000, l.Account, l.Kind)
		}
	}
	for name, path := range s.Folders {
		if v, err := volume.Of(path); err == nil {
			set(diskFree, float64(v.Free), name)
		}
	}
	up := 0.0
	if p.Up {
		up = 1
	}
	set(serverUp, up)
	for status, n := range p.Runs {
		set(openRuns, float64(n), status)
	}
	for _, q := range p.Queues {
		set(backlog, float64(q.Tasks), q.Name)
		set(age, q.Age.Seconds(), q.Name)
	}
}

package connect

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/telemetry"
)

// Metrics returns the metrics of this process, and the handler of those of the SDK. Both are nil if the settings do not
// want them.
func Metrics(s config.Settings) (*telemetry.Metrics, client.MetricsHandler) {
	if s.Metrics.Listen == "" {
		return nil, nil
	}
	m := telemetry.New(build.Version())
	return m, SDKMetrics(m.Registry())
}

// SDKMetrics returns a handler that registers the metrics of the Temporal SDK: counters end in _total and timers are
// histograms in seconds.
func SDKMetrics(r prometheus.Registerer) client.MetricsHandler {
	all := &sdkMetrics{byID: map[string]prometheus.Metric{}}
	r.MustRegister(all)
	return sdkTags{all: all}
}

// sdkMetrics has one metric for each name with its tags. The SDK adds tags as it learns them, so the metrics of one
// name differ in their labels.
type sdkMetrics struct {
	mu   sync.Mutex
	byID map[string]prometheus.Metric
}

// Describe announces nothing: the names are known when the SDK uses them.
func (*sdkMetrics) Describe(chan<- *prometheus.Desc) {}

func (s *sdkMetrics) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.byID {
		ch <- m
	}
}

// sdkTags is a handler with tags.
type sdkTags struct {
	all  *sdkMetrics
	tags map[string]string
}

func (t sdkTags) WithTags(tags map[string]string) client.MetricsHandler {
	joined := maps.Clone(t.tags)
	if joined == nil {
		joined = map[string]string{}
	}
	maps.Copy(joined, tags)
	return sdkTags{t.all, joined}
}

// help is the same for all metrics of a name, whatever their tags.
const help = "A metric of the Temporal SDK"

// once returns the metric of a name with the tags of t, and makes it if it is the first time.
func once[M prometheus.Metric](t sdkTags, name string, fresh func(labels prometheus.Labels) M) M {
	labels := prometheus.Labels{}
	for tag, value := range t.tags {
		labels[plainName(tag)] = value
	}
	id := name
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		id += fmt.Sprintf(" %s=%q", label, labels[label])
	}
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	if m, ok := t.all.byID[id].(M); ok {
		return m
	}
	m := fresh(labels)
	t.all.byID[id] = m
	return m
}

// plainName replaces what a name of Prometheus may not contain.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, name)
}

type sdkCounter struct{ prometheus.Counter }

func (c sdkCounter) Inc(n int64) { c.Add(float64(max(0, n))) }

func (t sdkTags) Counter(name string) client.MetricsCounter {
	name = strings.TrimSuffix(plainName(name), "_total") + "_total"
	return sdkCounter{once(t, name, func(l prometheus.Labels) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: l})
	})}
}

type sdkGauge struct{ prometheus.Gauge }

func (g sdkGauge) Update(v float64) { g.Set(v) }

func (t sdkTags) Gauge(name string) client.MetricsGauge {
	name = plainName(name)
	return sdkGauge{once(t, name, func(l prometheus.Labels) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: l})
	})}
}

type sdkTimer struct{ prometheus.Histogram }

func (h sdkTimer) Record(d time.Duration) { h.Observe(d.Seconds()) }

func (t sdkTags) Timer(name string) client.MetricsTimer {
	name = strings.TrimSuffix(plainName(name), "_seconds") + "_seconds"
	return sdkTimer{once(t, name, func(l prometheus.Labels) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, ConstLabels: l,
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}})
	})}
}

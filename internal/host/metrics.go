package host

import (
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/build"
)

// Metrics are the metrics of one worker process. Counters come from the events that this worker writes to run
// directories, so they cannot differ from the journal; gauges are read when the metrics are requested. No label has the
// id of a run, a task or a path.
type Metrics struct {
	registry *prometheus.Registry
	sdk      client.MetricsHandler

	results, costs, tokens, ended *prometheus.CounterVec
	duration                      *prometheus.HistogramVec
	lag                           prometheus.Histogram
	sets                          sets
	retry                         time.Duration // how often it tries to listen

	gauges func(set func(r row, value float64, labels ...string)) // nil: none
}

// Kinds of metrics.
const (
	kindCounter   = "counter"
	kindGauge     = "gauge"
	kindHistogram = "histogram"
)

// row is a row of the table of metrics, which docs/telemetry.md repeats.
type row struct {
	name, kind, help string
	labels           []string
}

// The rows. Those of the SDK begin with temporal_, those of the process with go_ and process_.
var (
	buildInfo    = row{"passbook_build_info", kindGauge, "1; the version of the program", []string{"version", "go"}}
	callsRunning = row{"passbook_calls_running", kindGauge, "Calls that this worker makes now",
		[]string{"account", "program"}}
	slots    = row{"passbook_call_slots", kindGauge, "Maximum number of calls of this worker", nil}
	openRuns = row{"passbook_runs_open", kindGauge, "Open runs of the namespace; waiting_limit: they wait for a limit",
		[]string{"status"}}
	limited = row{"passbook_account_limit_reset_timestamp_seconds", kindGauge,
		"When the limit of an account ends, while it is in force on this host", []string{"account", "limit"}}
	backlog = row{"passbook_queue_tasks", kindGauge, "Activities in a queue that no worker has taken",
		[]string{"queue"}}
	age = row{"passbook_queue_oldest_task_age_seconds", kindGauge, "How long the oldest of them waits",
		[]string{"queue"}}
	serverUp = row{"passbook_server_up", kindGauge, "1: the last poll of the Temporal server succeeded", nil}
	diskFree = row{"passbook_disk_free_bytes", kindGauge, "Free space for this user on the disk of a folder",
		[]string{"folder"}}
	results = row{"passbook_calls_total", kindCounter, "Calls by role and outcome: ok or an error category",
		[]string{"role", "outcome"}}
	costs = row{"passbook_cost_usd_total", kindCounter, "Known cost of calls in USD",
		[]string{"pipeline", "role", "model"}}
	tokens = row{"passbook_tokens_total", kindCounter, "Tokens of calls: input, output, cache_read or cache_write",
		[]string{"pipeline", "role", "model", "type"}}
	duration = row{"passbook_call_duration_seconds", kindHistogram, "Duration of calls", []string{"role"}}
	ended    = row{"passbook_runs_ended_total", kindCounter, "Runs that ended, by status", []string{"status"}}
	lag      = row{"passbook_projection_lag_seconds", kindHistogram,
		"Time from an event to its line on disk, of the oldest of a batch", nil}
)

func (r row) counters() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: r.name, Help: r.help}, r.labels)
}

func (r row) options(buckets ...float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Name: r.name, Help: r.help, Buckets: buckets}
}

// OpenMetrics returns the metrics of this process; nil: the settings do not want them.
func OpenMetrics(s config.Settings) (*Metrics, error) {
	if s.Metrics.Listen == "" {
		return nil, nil
	}
	return NewMetrics(build.Version())
}

// NewMetrics returns the metrics of this process, with those of the Go runtime and of the Temporal SDK.
func NewMetrics(version string) (*Metrics, error) {
	const minute, hour = 60, 3600
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		results:  results.counters(), costs: costs.counters(), tokens: tokens.counters(), ended: ended.counters(),
		duration: prometheus.NewHistogramVec(duration.options(1, 5, 15, 30, minute, 2*minute, 5*minute, 10*minute,
			30*minute, hour, 2*hour), duration.labels),
		lag:  prometheus.NewHistogram(lag.options(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, minute)),
		sets: sets{seen: map[[3]string]bool{}}, retry: retryEvery,
	}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: buildInfo.name, Help: buildInfo.help}, buildInfo.labels)
	info.WithLabelValues(version, runtime.Version()).Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), info, m.results, m.costs, m.tokens, m.ended,
		m.duration, m.lag, atRequest{m})
	reader, err := exporter.New(exporter.WithRegisterer(m.registry), exporter.WithoutScopeInfo(),
		exporter.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("register the metrics of the Temporal SDK: %w", err)
	}
	timers := metric.NewView(metric.Instrument{Kind: metric.InstrumentKindHistogram},
		metric.Stream{Aggregation: metric.AggregationExplicitBucketHistogram{
			Boundaries: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, minute, 5 * minute, 30 * minute}}})
	m.sdk = opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{UseMonotonicCounters: true,
		Meter: metric.NewMeterProvider(metric.WithReader(reader), metric.WithView(timers)).Meter("temporal-sdk-go")})
	return m, nil
}

// Handler registers the metrics of the Temporal SDK; nil: without metrics.
func (m *Metrics) Handler() client.MetricsHandler {
	if m == nil {
		return nil
	}
	return m.sdk
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
	if a.gauges != nil {
		a.gauges(func(r row, value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(r.desc(), prometheus.GaugeValue, value, labels...)
		})
	}
}

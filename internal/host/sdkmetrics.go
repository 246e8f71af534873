package host

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/build"
)

// Metrics returns the metrics of this process, and the handler of those of the SDK. Both are nil if the settings do not
// want them.
func OpenMetrics(s config.Settings) (*Metrics, client.MetricsHandler, error) {
	if s.Metrics.Listen == "" {
		return nil, nil, nil
	}
	m := NewMetrics(build.Version())
	sdk, err := SDKMetrics(m.Registry())
	return m, sdk, err
}

// SDKMetrics returns a handler that registers the metrics of the Temporal SDK: counters end in _total and timers are
// histograms in seconds.
func SDKMetrics(r prometheus.Registerer) (client.MetricsHandler, error) {
	reader, err := exporter.New(exporter.WithRegisterer(r), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("register the metrics of the Temporal SDK: %w", err)
	}
	timers := metric.NewView(metric.Instrument{Kind: metric.InstrumentKindHistogram},
		metric.Stream{Aggregation: metric.AggregationExplicitBucketHistogram{
			Boundaries: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}}})
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{UseMonotonicCounters: true,
		Meter: metric.NewMeterProvider(metric.WithReader(reader), metric.WithView(timers)).Meter("temporal-sdk-go")}), nil
}

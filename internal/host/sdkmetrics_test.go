package host_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/host"
)

// TestMetricsOfTheSDK: one name with different tags, as the SDK uses it, is one metric that Prometheus can read.
func TestMetricsOfTheSDK(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	h := must(host.SDKMetrics(r))(t)
	queue := h.WithTags(map[string]string{"task_queue": "q"})
	for range 2 {
		queue.Counter("temporal_request").Inc(1)
	}
	queue.WithTags(map[string]string{"operation": "Poll", "status.code": "a \"b\"\n"}).Counter("temporal_request").Inc(3)
	h.Gauge("temporal_num_pollers").Update(5)
	queue.Timer("temporal_request_latency").Record(1500 * time.Millisecond)

	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w,
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	got := must(parser.TextToMetricFamilies(w.Body))(t)
	counts := map[int]float64{} // by number of labels
	for _, m := range got["temporal_request_total"].GetMetric() {
		counts[len(m.GetLabel())] = m.GetCounter().GetValue()
	}
	require.Equal(t, map[int]float64{1: 2, 3: 3}, counts)
	require.InDelta(t, 5, got["temporal_num_pollers"].GetMetric()[0].GetGauge().GetValue(), 0)
	require.InDelta(t, 1.5, got["temporal_request_latency_seconds"].GetMetric()[0].GetHistogram().GetSampleSum(), 1e-9)
}

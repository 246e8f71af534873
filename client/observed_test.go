package client_test

import (
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/passbook-run/passbook/client"
	"github.com/passbook-run/passbook/internal/traces"
	"github.com/passbook-run/passbook/run"
)

// collector keeps the spans that the worker of this process exports.
type collector struct {
	mu    sync.Mutex
	spans []*tracepb.Span
}

var received collector

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var req collectorpb.ExportTraceServiceRequest
	if errors.Join(err, proto.Unmarshal(raw, &req)) == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.spans = append(c.spans, req.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
}

// observe has the worker of this process serve metrics and export traces.
func observe() (stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := httptest.NewServer(&received)
	return server.Close, errors.Join(l.Close(), os.Setenv("PASSBOOK_METRICS_LISTEN", l.Addr().String()),
		os.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL))
}

// TestRunIsCountedAndTraced: what a run did is in the metrics of its worker and in its trace.
func TestRunIsCountedAndTraced(t *testing.T) {
	c, err := client.Dial(t.Context(), client.Options{})
	require.NoError(t, err)
	defer c.Close()
	started, err := c.Start(t.Context(), client.StartOptions{Definition: "testdata/greet/pipeline.yaml",
		Dir: filepath.Join(t.TempDir(), "run")})
	require.NoError(t, err)
	status, err := c.Wait(t.Context(), started.RunID, func(s client.Status) bool { return s.Question != nil })
	require.NoError(t, err)
	_, err = c.Decide(t.Context(), started.RunID, client.Decision{Action: run.ActionContinue,
		Question: status.Question.ID})
	require.NoError(t, err)
	_, err = c.Wait(t.Context(), started.RunID, nil)
	require.NoError(t, err)

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		names := map[string]int{}
		received.mu.Lock()
		defer received.mu.Unlock()
		for _, s := range received.spans {
			if traces.ID(started.RunID) == hex.EncodeToString(s.TraceId) {
				names[strings.Fields(s.Name)[0]]++
			}
		}
		require.Equal(c, 1, names["run"], names)
		require.Equal(c, 1, names["question"])
		require.Positive(c, names["invoke_agent"])
		require.Equal(c, names["pass"], names["attempt"])
	}, time.Minute, 20*time.Millisecond)

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://"+os.Getenv("PASSBOOK_METRICS_LISTEN")+"/metrics", nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	got, err := parser.TextToMetricFamilies(res.Body)
	require.NoError(t, err)
	for _, name := range []string{"passbook_runs_ended_total", "passbook_calls_total", "passbook_spans_exported_total"} {
		require.NotEmpty(t, got[name].GetMetric(), name)
		require.Positive(t, got[name].GetMetric()[0].GetCounter().GetValue(), name)
	}
}

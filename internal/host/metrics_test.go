package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// rows is the table of metrics.
func rows() []row {
	return []row{buildInfo, callsRunning, slots, openRuns, limited, backlog, age, serverUp, diskFree, results, costs, tokens,
		duration, ended, lag}
}

// page is the answer to a request, parsed as Prometheus does.
func page(t *testing.T, m *Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:9464/metrics", nil)
	m.serving(true, &Readiness{}).ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(w.Body)
	require.NoError(t, err)
	return families
}

// samples are the values of a metric by its labels; of a histogram, the number of its values.
func samples(f *dto.MetricFamily) map[string]float64 {
	out := map[string]float64{}
	for _, m := range f.GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		out[strings.Join(labels, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() +
			float64(m.GetHistogram().GetSampleCount())
	}
	return out
}

func event(t *testing.T, kind run.Kind, payload any) run.Event {
	t.Helper()
	raw, err := run.Payload(payload)
	require.NoError(t, err)
	return run.Event{Seq: 1, TS: "2026-01-02T03:04:05.000Z", Kind: kind, Payload: raw}
}

// used is a Metrics with a value of each metric.
func used(t *testing.T) *Metrics {
	t.Helper()
	m := must(NewMetrics("v1"))(t)
	spend := run.Spend{Tokens: run.Tokens{Input: 10, Output: 2, CacheRead: 5}, USD: 0.25, Model: "m-1"}
	now := time.Date(2026, 1, 2, 3, 4, 5, 500e6, time.UTC)
	m.Projected("review", []run.Event{
		event(t, run.KindPassAttempt, run.PassAttempt{Pass: run.Pass{Role: "worker"}, Category: run.CategoryAgentTimeout,
			DurationMS: 4000, Spend: &spend}),
		event(t, run.KindPassAttempt, run.PassAttempt{Pass: run.Pass{Role: "worker"},
			Category: run.CategoryRateLimit, Limit: &run.Limit{Kind: run.LimitPlan}}),
		event(t, run.KindPassEnd, run.PassEnd{Pass: run.Pass{Role: "worker"}, Outcome: run.CategoryOK, DurationMS: 9,
			Spend: spend}),
		event(t, run.KindPassEnd, run.PassEnd{Pass: run.Pass{Role: "command"}, Outcome: run.CategoryOK}),
		event(t, run.KindPassEnd, run.PassEnd{Pass: run.Pass{Role: "worker"}, Outcome: run.CategoryAgentTimeout,
			Attempted: true}),
		event(t, run.KindRunEnd, run.RunEnd{Status: run.Done}),
	}, now)
	m.gauges = func(set func(row, float64, ...string)) {
		for _, f := range []fact{{slots, 4, nil}, {callsRunning, 2, []string{"acme", "claude"}}, {serverUp, 1, nil},
			{limited, 1767323045.5, []string{"acme", "plan"}}, {backlog, 3, []string{"q"}}, {age, 60, []string{"q"}},
			{diskFree, 1, []string{"state_dir"}}, {openRuns, 2, []string{string(run.WaitingLimit)}}} {
			set(f.row, f.value, f.labels...)
		}
	}
	return m
}

func TestMetricsShowWhatWasProjected(t *testing.T) {
	got := page(t, used(t))
	for name, want := range map[string]map[string]float64{
		callsRunning.name: {"account=acme program=claude": 2},
		slots.name:        {"": 4},
		openRuns.name:     {"status=waiting_limit": 2},
		limited.name:      {"account=acme limit=plan": 1767323045.5},
		backlog.name:      {"queue=q": 3},
		age.name:          {"queue=q": 60},
		serverUp.name:     {"": 1},
		results.name: {
			"outcome=" + string(run.CategoryAgentTimeout) + " role=worker": 1, "outcome=ok role=worker": 1,
			"outcome=ok role=command": 1,
		},
		costs.name: {"model=m-1 pipeline=review role=worker": 0.5},
		tokens.name: {
			"model=m-1 pipeline=review role=worker type=input":       20,
			"model=m-1 pipeline=review role=worker type=output":      4,
			"model=m-1 pipeline=review role=worker type=cache_read":  10,
			"model=m-1 pipeline=review role=worker type=cache_write": 0,
		},
		duration.name: {"role=worker": 2, "role=command": 1},
		ended.name:    {"status=done": 1},
		lag.name:      {"": 1},
	} {
		require.Equal(t, want, samples(got[name]), name)
	}
	require.InDelta(t, 0.5, got[lag.name].GetMetric()[0].GetHistogram().GetSampleSum(), 1e-9)
	require.Positive(t, samples(got[diskFree.name])["folder=state_dir"])
	require.Contains(t, got, "go_goroutines")
}

// TestDocsListEveryMetric compares the list of the page with the metrics that a worker has.
func TestDocsListEveryMetric(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "telemetry.md"))
	require.NoError(t, err)
	got, documented := page(t, used(t)), 0
	list := strings.ReplaceAll(string(raw), "\n  ", " ")
	for _, r := range rows() {
		labels := ""
		if len(r.labels) > 0 {
			labels = "; `" + strings.Join(r.labels, "`, `") + "`"
		}
		require.Contains(t, list, fmt.Sprintf("\n- `%s` (%s%s): %s\n", r.name, r.kind, labels, r.help))
		f := got[r.name]
		require.NotNil(t, f, r.name)
		require.Equal(t, r.kind, strings.ToLower(f.GetType().String()), r.name)
		require.Equal(t, r.kind == kindCounter, strings.HasSuffix(r.name, "_total"), r.name)
		require.Len(t, f.GetMetric()[0].GetLabel(), len(r.labels), r.name)
	}
	for name := range got {
		if strings.HasPrefix(name, "passbook_") {
			documented++
		}
	}
	require.Equal(t, len(rows()), documented, "a metric has no row")
	require.Equal(t, len(rows()), strings.Count(list, "\n- `passbook_"), "the page lists what is not a metric")
}

func TestLabelsAreBounded(t *testing.T) {
	m := must(NewMetrics("v1"))(t)
	for i := range 2 * maxSets {
		m.Projected(fmt.Sprint("p", i), []run.Event{event(t, run.KindPassEnd,
			run.PassEnd{Pass: run.Pass{Role: fmt.Sprint("r", i)}, Spend: run.Spend{USD: 1}})}, time.Now())
	}
	got := page(t, m)
	require.LessOrEqual(t, len(got[costs.name].GetMetric()), maxSets+1)
	require.LessOrEqual(t, len(got[results.name].GetMetric()), 2*maxSets+1)
	require.InDelta(t, maxSets, samples(got[costs.name])["model=other pipeline=other role=other"], maxSets)
	sum := 0.0
	for _, usd := range samples(got[costs.name]) {
		sum += usd
	}
	require.InDelta(t, 2*maxSets, sum, 1e-9, "no cost is lost")
}

func TestHealth(t *testing.T) {
	broken := errors.New("open /home/ada/secret: denied")
	var fails error
	asked := 0
	ready := &Readiness{Checks: []Condition{
		{"server", func(context.Context) error { return nil }},
		{"state_dir", func(context.Context) error { asked++; return fails }},
	}}
	h := must(NewMetrics("v1"))(t).serving(true, ready)
	get := func(url string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
		return w.Code, w.Body.String()
	}
	for _, row := range []struct {
		url    string
		fails  error
		status int
		body   string
	}{
		{"http://127.0.0.1:9464/healthz", broken, 200, "ok\n"},
		{"http://localhost/readyz", nil, 200, "ready\n"},
		{"http://[::1]:9464/readyz", broken, 503, "not ready: state_dir\n"},
		{"http://attacker.example:9464/metrics", nil, 403, "this address answers requests to"},
		{"http://127.0.0.1/other", nil, 404, ""},
	} {
		fails, ready.at = row.fails, time.Time{}
		status, body := get(row.url)
		require.Equal(t, row.status, status, row.url)
		require.Contains(t, body, row.body, row.url)
	}
	before := asked
	for range 10 {
		get("http://127.0.0.1/readyz")
	}
	require.LessOrEqual(t, asked-before, 1, "requests within a second share an answer")
}

func TestWorkerWorksWhileItsPortIsUsed(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m := must(NewMetrics("v1"))(t)
	m.retry = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	reports, ended := make(chan error, 100), make(chan struct{})
	go func() {
		defer close(ended)
		m.Serve(ctx, l.Addr().String(), &Readiness{}, func(err error) { reports <- err })
	}()
	require.ErrorIs(t, <-reports, syscall.EADDRINUSE)
	require.NoError(t, l.Close())
	require.Eventually(t, func() bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Addr().String()+"/healthz", nil)
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
	}, 10*time.Second, time.Millisecond)
	cancel()
	<-ended
	require.Empty(t, reports, "the error is reported once")
}

// TestMetricsOfTheSDK: one name with different tags, as the SDK uses it, is one metric that Prometheus can read.
func TestMetricsOfTheSDK(t *testing.T) {
	m := must(NewMetrics("v1"))(t)
	h := m.Handler()
	queue := h.WithTags(map[string]string{"task_queue": "q"})
	for range 2 {
		queue.Counter("temporal_request").Inc(1)
	}
	queue.WithTags(map[string]string{"operation": "Poll", "status.code": "a \"b\"\n"}).Counter("temporal_request").Inc(3)
	h.Gauge("temporal_num_pollers").Update(5)
	queue.Timer("temporal_request_latency").Record(1500 * time.Millisecond)

	got := page(t, m)
	counts := map[int]float64{} // by number of labels
	for _, c := range got["temporal_request_total"].GetMetric() {
		counts[len(c.GetLabel())] = c.GetCounter().GetValue()
	}
	require.Equal(t, map[int]float64{1: 2, 3: 3}, counts)
	require.InDelta(t, 5, got["temporal_num_pollers"].GetMetric()[0].GetGauge().GetValue(), 0)
	require.InDelta(t, 1.5, got["temporal_request_latency_seconds"].GetMetric()[0].GetHistogram().GetSampleSum(), 1e-9)
}

package workerhost_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/agent/scripted"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/workerhost"
)

// TestMain starts an embedded server. It builds the server if the cache does not contain it.
func TestMain(m *testing.M) {
	code, err := withServer(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withServer(tests func() int) (code int, err error) {
	if err := testenv.UseMemory(); err != nil {
		return 1, err
	}
	root, err := os.MkdirTemp("", "passbook-workerhost-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	state, err := testenv.Isolate(root)
	if err != nil {
		return 1, err
	}
	if _, err := host.EnsureServer(context.Background(), host.ServerOptions{StateDir: state, SourceDir: ".."}, nil); err != nil {
		return 1, err
	}
	defer func() {
		serr := host.StopServer(context.Background(), state, 20*time.Second)
		err = errors.Join(err, serr)
	}()
	return tests(), nil
}

// TestWorkerServesItsMetrics and its health.
func TestWorkerServesItsMetrics(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	settings, err := config.Load(nil)
	require.NoError(t, err)
	settings.Metrics.Listen = l.Addr().String()
	require.NoError(t, l.Close())
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- workerhost.Run(ctx, workerhost.Options{Settings: &settings,
			Ready: func() error { close(ready); return nil }})
	}()
	<-ready
	require.Eventually(t, func() bool { return get(t, settings, "/readyz") == "200 ready\n" }, time.Minute,
		10*time.Millisecond)
	require.Equal(t, "200 ok\n", get(t, settings, "/healthz"))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		parser := expfmt.NewTextParser(model.LegacyValidation)
		_, text, _ := strings.Cut(get(t, settings, "/metrics"), " ")
		got, err := parser.TextToMetricFamilies(strings.NewReader(text))
		require.NoError(c, err)
		require.InDelta(c, 1, got["passbook_server_up"].GetMetric()[0].GetGauge().GetValue(), 0)
		require.NotNil(c, got["temporal_request_total"])
		require.Len(c, got["passbook_queue_tasks"].GetMetric(), 2)
		require.Len(c, got["passbook_disk_free_bytes"].GetMetric(), 2)
	}, time.Minute, 50*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}

// get returns status and body of an answer; empty: there is none.
func get(t *testing.T, s config.Settings, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Metrics.Listen+path, nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return fmt.Sprintf("%d %s", res.StatusCode, body)
}

// TestProcessOfACallIsNotAWorker: a program that does not call RunChild first gets an error.
func TestProcessOfACallIsNotAWorker(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // without a check of the arguments, the error is another one
	for _, verb := range []string{scripted.Verb, supervisor.Verb} {
		os.Args = []string{args[0], verb}
		require.ErrorIs(t, workerhost.Run(ctx, workerhost.Options{}), workerhost.ErrChild)
	}
	_, ok := workerhost.RunChild([]string{"other", scripted.Verb})
	require.False(t, ok)
	_, ok = workerhost.RunChild(nil)
	require.False(t, ok)
}

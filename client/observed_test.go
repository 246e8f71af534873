package client_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/client"
	"github.com/passbook-run/passbook/run"
)

// observe has the worker of this process serve metrics.
func observe() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return errors.Join(l.Close(), os.Setenv("PASSBOOK_METRICS_LISTEN", l.Addr().String()))
}

// TestRunIsCounted: what a run did is in the metrics of its worker.
func TestRunIsCounted(t *testing.T) {
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

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://"+os.Getenv("PASSBOOK_METRICS_LISTEN")+"/metrics", nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	got, err := parser.TextToMetricFamilies(res.Body)
	require.NoError(t, err)
	for _, name := range []string{"passbook_runs_ended_total", "passbook_calls_total"} {
		require.NotEmpty(t, got[name].GetMetric(), name)
		require.Positive(t, got[name].GetMetric()[0].GetCounter().GetValue(), name)
	}
}

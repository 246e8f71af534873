package console

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/run"
)

// BenchmarkThousandRuns measures the list and the inbox of 1000 runs that ask, after the first request.
func BenchmarkThousandRuns(b *testing.B) {
	b.Setenv("TEMPORAL_ADDRESS", "")
	h := api.Host{Settings: config.Settings{StateDir: b.TempDir(), RunRoot: b.TempDir()},
		Clock: func() run.Clock { return run.Clock{Now: time.Now(), Zone: time.UTC} }}
	old := time.Now().Add(-time.Hour)
	for i := range 1000 {
		dir := filepath.Join(h.Settings.RunRoot, fmt.Sprint(i))
		require.NoError(b, os.CopyFS(dir, os.DirFS("testdata/letter")))
		id := fmt.Sprintf("%08d-1523-486a-8b74-0d5ef482ff96", i)
		for _, name := range []string{"run.json", "meta.json", "events.jsonl"} {
			raw, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(b, err)
			raw = bytes.ReplaceAll(raw, []byte(letter), []byte(id))
			require.NoError(b, os.WriteFile(filepath.Join(dir, name), raw, 0o600))
			require.NoError(b, os.Chtimes(filepath.Join(dir, name), old, old))
		}
	}
	s, err := newServer(Options{Host: h, Err: io.Discard}, &url.URL{Scheme: "http", Host: "localhost:1"}, nil, false)
	require.NoError(b, err)
	mux := http.NewServeMux()
	_, err = s.describe(mux)
	require.NoError(b, err)
	get := func(b *testing.B, path string) {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
		mux.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Identity{Can: api.CanRead})))
		require.Equal(b, http.StatusOK, w.Code, w.Body)
		require.Contains(b, w.Body.String(), `"total":1000`)
	}
	for _, path := range []string{"/v1/runs?limit=200", "/v1/questions?limit=1000"} {
		get(b, path)
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				get(b, path)
			}
		})
	}
}

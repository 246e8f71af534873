// Package fakes3 is an S3 server inside a test: a real one to every client, but
// in memory, and gone with the test.
package fakes3

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"
)

// env is what a client needs, besides the URL.
var env = map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}

// setEnv sets the variables for this process and its children. They are the same for every test, so parallel tests
// may share them.
var setEnv = sync.OnceValue(func() error {
	for name, value := range env {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
})

// Start starts a server with one empty bucket and returns the bucket's URL, for
// [store.Open] and PASSBOOK_STORE. The credentials stay in the environment of
// this process and of the processes that it starts.
func Start(t *testing.T) string {
	t.Helper()
	url, _ := StartGated(t)
	return url
}

// Gate closes and opens a server to its clients: closed, it refuses every request.
type Gate struct{ closed atomic.Bool }

// Close lets nothing through until [Gate.Open].
func (g *Gate) Close() { g.closed.Store(true) }

// Open lets everything through again.
func (g *Gate) Open() { g.closed.Store(false) }

// StartGated is [Start] with a gate in front of the server.
func StartGated(t *testing.T) (string, *Gate) {
	t.Helper()
	require.NoError(t, setEnv())
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("passbook"))
	gate, inner := &Gate{}, gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gate.closed.Load() {
			http.Error(w, "the gate is closed", http.StatusForbidden)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return "s3://passbook?" + url.Values{
		"endpoint": {server.URL}, "region": {"us-east-1"}, "use_path_style": {"true"},
	}.Encode(), gate
}

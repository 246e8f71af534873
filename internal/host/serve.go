package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Condition is one condition of readiness. Its name is shown, its error is not.
type Condition struct {
	Name string
	Do   func(context.Context) error
}

// Readiness answers whether all checks pass. Requests within a second share an answer.
type Readiness struct {
	Checks []Condition

	mu     sync.Mutex
	at     time.Time
	failed []string
}

const (
	checkEvery   = time.Second
	readyTimeout = 2 * time.Second
)

// ServeHTTP answers 200 or 503 with the names of the checks that fail.
func (rd *Readiness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if failed := rd.check(context.WithoutCancel(r.Context())); len(failed) > 0 {
		plainText(w, http.StatusServiceUnavailable, "not ready: "+strings.Join(failed, ", ")+"\n")
		return
	}
	plainText(w, http.StatusOK, "ready\n")
}

func (rd *Readiness) check(ctx context.Context) []string {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	if !rd.at.IsZero() && time.Since(rd.at) < checkEvery {
		return rd.failed
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	errs := make([]error, len(rd.Checks))
	var all sync.WaitGroup
	for i, c := range rd.Checks {
		all.Go(func() { errs[i] = c.Do(ctx) })
	}
	all.Wait()
	rd.failed = nil
	for i, err := range errs {
		if err != nil {
			rd.failed = append(rd.failed, rd.Checks[i].Name)
		}
	}
	rd.at = time.Now()
	return rd.failed
}

// Writable writes a file and removes it. A folder that does not exist yet is not checked.
func Writable(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	f, err := os.CreateTemp(dir, ".ready-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString("ok\n")
	return errors.Join(err, f.Close(), os.Remove(filepath.Clean(f.Name())))
}

// Healthy answers that the process is alive.
func Healthy(w http.ResponseWriter, _ *http.Request) { plainText(w, http.StatusOK, "ok\n") }

func plainText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the client has gone
}

// serving answers /metrics, /healthz and /readyz. On a loopback address it answers only requests that name this machine:
// a page in a browser must not read metrics under a name that resolves to it.
func (m *Metrics) serving(loopback bool, ready *Readiness) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", Healthy)
	mux.Handle("GET /readyz", ready)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if loopback && !namesThisMachine(r.Host) {
			plainText(w, http.StatusForbidden, "this address answers requests to 127.0.0.1, [::1] or localhost\n")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func namesThisMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// retryEvery is how often a worker tries again to listen: the worker before it may still use the port.
const retryEvery = 5 * time.Second

// Serve answers requests on an address until ctx ends. A worker works without its metrics, so that an error is only
// reported, once, and Serve tries again.
func (m *Metrics) Serve(ctx context.Context, address string, ready *Readiness, report func(error)) {
	reported := false
	for {
		err := m.serve(ctx, address, ready)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !reported {
			reported = true
			report(fmt.Errorf("serve metrics on %s: %w; the worker works without them and tries again", address, err))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(m.retry):
		}
	}
}

func (m *Metrics) serve(ctx context.Context, address string, ready *Readiness) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	const limit, header = 10 * time.Second, 16 << 10
	srv := &http.Server{Handler: m.serving(namesThisMachine(l.Addr().String()), ready), ReadHeaderTimeout: limit,
		ReadTimeout: limit, WriteTimeout: limit, IdleTimeout: time.Minute, MaxHeaderBytes: header}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // it closes files only
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

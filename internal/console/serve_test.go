package console

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/disk"
)

// certificate makes a certificate for a host.
func certificate(t *testing.T, host string) (cert, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	require.NoError(t, err)
	raw, err := x509.MarshalECPrivateKey(secret)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "EC PRIVATE KEY", Bytes: raw}} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}

// started starts a console, and returns its URL and a function that ends it.
func started(t *testing.T, at Listening) (base string, end func() error) {
	t.Helper()
	return startedIn(t, t.TempDir(), at)
}

// startedIn starts a console with a state directory.
func startedIn(t *testing.T, state string, at Listening) (base string, end func() error) {
	t.Helper()
	o := Options{Host: api.Host{Settings: config.Settings{StateDir: state, RunRoot: t.TempDir()}}, User: "ada",
		Err: io.Discard}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, o, at, func(base, _ string) error {
			ready <- base
			return nil
		})
	}()
	select {
	case base = <-ready:
	case err := <-ended:
		require.NoError(t, err)
	}
	return base, func() error {
		cancel()
		return <-ended
	}
}

func TestServeRefuses(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	cert, key := certificate(t, "passbook.example.org")
	for _, row := range []struct {
		at   Listening
		want string
	}{
		{Listening{Address: "0.0.0.0:0"}, "other machines could reach it"},
		{Listening{Address: ":0"}, "other machines could reach it"},
		{Listening{Address: "[::]:0"}, "other machines could reach it"},
		{Listening{Address: "192.0.2.1:8400"}, "other machines could reach it"},
		{Listening{Address: "8400"}, "write HOST:PORT"},
		{Listening{Address: "127.0.0.1:http-or-so"}, "choose another address"},
		{Listening{Address: busy.Addr().String()}, "another program uses the port"},
		{Listening{Address: "0.0.0.0:0", Cert: cert}, "belong together"},
		{Listening{Address: "0.0.0.0:0", Cert: cert, Key: cert}, "read the certificate"},
		{Listening{Address: "0.0.0.0:0", Cert: cert, Key: key, Proxy: "https://a.example"}, "exclude each other"},
		{Listening{Address: "0.0.0.0:0", Proxy: "http://a.example"}, "must use https"},
		{Listening{Address: "0.0.0.0:0", Proxy: "https://a.example/path"}, "without a path"},
		{Listening{Address: "0.0.0.0:0", Proxy: "a.example"}, "without a path"},
	} {
		o := Options{Host: api.Host{Settings: config.Settings{StateDir: t.TempDir()}}, Err: io.Discard}
		err := Serve(t.Context(), o, row.at, func(string, string) error {
			require.Fail(t, "it listens", row.at)
			return nil
		})
		require.ErrorContains(t, err, row.want)
		require.Equal(t, api.CodeInvalid, api.CodeOf(err), row.want)
	}
}

// TestServeWithTLS: the console is known by the names of its certificate, and its cookie is sent with TLS only.
func TestServeWithTLS(t *testing.T) {
	cert, key := certificate(t, "passbook.example.org")
	base, end := started(t, Listening{Address: "127.0.0.1:0", Cert: cert, Key: key})
	_, port, ok := strings.Cut(base, "https://passbook.example.org:")
	require.True(t, ok, "%s: a browser accepts the certificate", base)
	at := "127.0.0.1:" + port
	get := func(host string) *http.Response {
		c, err := tls.Dial("tcp", at, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"))
		require.NoError(t, err)
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		return r
	}
	r := get("PASSBOOK.example.org:8400")
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.NotEmpty(t, r.Header.Get("Strict-Transport-Security"))
	require.Equal(t, http.StatusForbidden, get("evil.example").StatusCode)
	require.NoError(t, end())
}

// TestServeBehindAProxy: the console is known by the proxy's name, whose pages are its own.
func TestServeBehindAProxy(t *testing.T) {
	base, end := started(t, Listening{Address: "127.0.0.1:0", Proxy: "https://passbook.example.org"})
	require.Equal(t, "https://passbook.example.org", base)
	require.NoError(t, end())
	d := newDesk(t, func(s *Server) { s.base, s.proxied, s.names = base, true, []string{"passbook.example.org"} })
	for header, want := range map[string]int{
		"Host: passbook.example.org":                                           http.StatusOK,
		"Host: passbook.example.org\nOrigin: https://passbook.example.org":     http.StatusOK,
		"Host: passbook.example.org\nOrigin: http://passbook.example.org":      http.StatusForbidden,
		"Host: passbook.example.org\nOrigin: https://www.passbook.example.org": http.StatusForbidden,
		"Host: www.passbook.example.org":                                       http.StatusForbidden,
		"Host: evil.example\nX-Forwarded-Host: passbook.example.org":           http.StatusForbidden,
	} {
		r, body := d.get("/v1/runs", header)
		require.Equal(t, want, r.StatusCode, "%s: %s", header, body)
	}
}

// TestServeEndsWithOpenStreams: the end of the program ends streams, and lets no client wait.
func TestServeEndsWithOpenStreams(t *testing.T) {
	d := newDesk(t)
	_, next, end := d.stream("Last-Event-ID: 5")
	defer end()
	next()
	require.Contains(t, next(), "id: 6\n")
	close(d.s.ending)
	require.Equal(t, "EOF", next())
	d.s.ending = make(chan struct{}) // the desk closes it
}

// TestLinkNeedsARunningConsole: a console that has ended, or that was killed, gets no links.
func TestLinkNeedsARunningConsole(t *testing.T) {
	state, now := t.TempDir(), time.Now()
	none := func() {
		_, err := Link(state, now)
		require.EqualError(t, err, "make a login link: no console runs with the state directory "+state+
			"; start it with: starter console")
	}
	none()
	start := func() (base string, end func() error) {
		return startedIn(t, state, Listening{Address: "127.0.0.1:0"})
	}
	first, endFirst := start()
	second, endSecond := start()
	linked := func(base string) {
		link, err := Link(state, now)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(link, base+"/"), link)
	}
	linked(second)
	require.NoError(t, endSecond())
	linked(first)
	require.NoError(t, endFirst())
	none()

	killed := filepath.Join(state, "console", "running", "1-a") // its record stays, and the kernel frees its lock
	record, err := json.Marshal(disk.Owner{PID: 1, What: "http://127.0.0.1:8400", Since: now})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(killed, record, 0o600))
	none()
	require.NoFileExists(t, killed)
}

package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/console/login"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/forgery"
)

// letter is the id of the recorded run, which asks a question.
const letter = "b654562e-1523-486a-8b74-0d5ef482ff96"

// desk is a console on a loopback port. There is no Temporal server.
type desk struct {
	t      *testing.T
	s      *Server
	at     string // host and port, as browsers name them
	addr   string // where it listens
	root   string
	tokens map[api.Access]string
	cookie *http.Cookie // of a browser that is logged in

	mu        sync.Mutex
	connected []access.Identity // that reached an operation which needs a server
}

func newDesk(t *testing.T, set ...func(*Server)) *desk {
	t.Helper()
	t.Setenv("TEMPORAL_ADDRESS", "")
	d := &desk{t: t, root: t.TempDir(), tokens: map[api.Access]string{}}
	h := api.Host{
		Settings: config.Settings{StateDir: filepath.Join(d.root, "state"), RunRoot: filepath.Join(d.root, "runs")},
		Clock:    func() run.Clock { return run.Clock{Now: time.Now(), Zone: time.UTC} },
		Connect: func(ctx context.Context) (operations.Operator, func(), error) {
			id, _ := access.From(ctx)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.connected = append(d.connected, id)
			return operations.Operator{}, nil, &host.ConnectError{What: "no server", Err: api.ErrNoServer}
		},
	}
	require.NoError(t, os.CopyFS(filepath.Join(h.Settings.RunRoot, "letter"), os.DirFS("testdata/letter")))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d.addr = l.Addr().String()
	d.at = strings.Replace(d.addr, "127.0.0.1", "k7f3q2.localhost", 1)
	d.s, err = newServer(Options{Host: h, User: "ada", Err: io.Discard}, &url.URL{Scheme: "http", Host: d.at},
		[]string{"k7f3q2.localhost"}, false)
	require.NoError(t, err)
	for _, f := range set {
		f(d.s)
	}
	for _, can := range api.Accesses() {
		d.tokens[can], err = d.s.tokens.Create(t.Context(), "to-"+string(can), can, time.Now())
		require.NoError(t, err)
	}
	d.cookie = d.s.logins.NewSession()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.s.serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return d
}

// link makes a login link and returns its secret.
func (d *desk) link() string {
	d.t.Helper()
	path, err := login.NewLink(d.s.host.Settings.StateDir, time.Now())
	require.NoError(d.t, err)
	return strings.TrimPrefix(path, "/login?key=")
}

// csrf is the token of the forms of a session.
func (d *desk) csrf(c *http.Cookie) string {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, "/", nil)
	require.NoError(d.t, err)
	r.AddCookie(c)
	session, ok := d.s.logins.Session(r)
	require.True(d.t, ok)
	return session.CSRF
}

// raw sends the bytes of a request, and returns the response.
func (d *desk) raw(text string) (*http.Response, string) {
	d.t.Helper()
	c, err := net.Dial("tcp", d.addr)
	require.NoError(d.t, err)
	defer c.Close()
	require.NoError(d.t, c.SetDeadline(time.Now().Add(20*time.Second)))
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(c, text) // the server may close the connection first
	}()
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: strings.Fields(text)[0]})
	require.NoError(d.t, err)
	body, err := io.ReadAll(r.Body)
	require.NoError(d.t, err)
	require.NoError(d.t, r.Body.Close())
	c.Close()
	<-sent
	return r, string(body)
}

// request is the text of a request with a header, a line each. Host and Connection are added.
func (d *desk) request(method, path, header, body string) string {
	if !strings.Contains(header, "Host:") {
		header = "Host: " + d.at + "\n" + header
	}
	if body != "" && !strings.Contains(header, "Content-Length:") && !strings.Contains(header, "Transfer-Encoding:") {
		header += fmt.Sprintf("\nContent-Length: %d", len(body))
	}
	lines := strings.FieldsFunc(header, func(r rune) bool { return r == '\n' })
	return method + " " + path + " HTTP/1.1\r\n" + strings.Join(append(lines, "Connection: close"), "\r\n") + "\r\n\r\n" +
		body
}

// get reads an address with a token that may read.
func (d *desk) get(path string, header ...string) (*http.Response, string) {
	d.t.Helper()
	return d.raw(d.request("GET", path, strings.Join(append(header, d.with(api.CanRead)), "\n"), ""))
}

// with is the header with a token.
func (d *desk) with(can api.Access) string { return "Authorization: Bearer " + d.tokens[can] }

// problem decodes a response that must be a problem.
func (d *desk) problem(r *http.Response, body string) problem {
	d.t.Helper()
	require.Equal(d.t, "application/problem+json", r.Header.Get("Content-Type"), body)
	var p problem
	require.NoError(d.t, json.Unmarshal([]byte(body), &p))
	require.Equal(d.t, r.StatusCode, p.Status)
	require.Equal(d.t, statuses[p.Code], p.Status)
	require.NotEmpty(d.t, p.Detail)
	return p
}

// files are all files of the desk with their digests.
func (d *desk) files() map[string]string {
	d.t.Helper()
	all := map[string]string{}
	require.NoError(d.t, filepath.WalkDir(d.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		all[path] = disk.Digest(raw)
		return err
	}))
	return all
}

func TestLogin(t *testing.T) {
	d := newDesk(t)
	secret := d.link()
	for _, ahead := range []string{"HEAD /login?key=%s HTTP/1.1\r\nHost: %s\r\n", "POST /login?key=%s HTTP/1.1\r\n" +
		"Host: %s\r\n", "GET /login?key=%s HTTP/1.1\r\nHost: %s\r\nSec-Purpose: prefetch\r\n"} {
		r, _ := d.raw(fmt.Sprintf(ahead, secret, d.at) + "Connection: close\r\n\r\n")
		require.Equal(t, http.StatusMethodNotAllowed, r.StatusCode)
		require.Empty(t, r.Cookies())
	}
	r, body := d.raw(d.request("GET", "/login?key="+secret, "", ""))
	require.Equal(t, http.StatusOK, r.StatusCode, "looking ahead does not use the link up")
	require.Contains(t, body, `content="0;url=/"`)
	require.Len(t, r.Cookies(), 1)
	cookie := r.Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)

	again, body := d.raw(d.request("GET", "/login?key="+secret, "", ""))
	require.Equal(t, http.StatusForbidden, again.StatusCode, body)
	require.Empty(t, again.Cookies())

	sent := "Cookie: " + cookie.Name + "=" + cookie.Value
	r, body = d.raw(d.request("GET", "/v1/runs", sent, ""))
	require.Equal(t, http.StatusOK, r.StatusCode, body)
	require.Contains(t, body, letter)
	csrf := d.csrf(cookie)
	for _, row := range []struct{ header, body string }{
		{"\nContent-Type: application/json\nX-CSRF-Token: " + csrf, "{}"},
		{"\nX-CSRF-Token: " + csrf, ""},
	} {
		r, body = d.raw(d.request("POST", "/v1/runs/"+letter+"/pause", sent+row.header, row.body))
		require.Equal(t, http.StatusServiceUnavailable, r.StatusCode, "it reaches the operation: %s", body)
	}
	require.Equal(t, access.Identity{Name: "ada", Can: api.CanOperate}, d.connected[0])

	r, _ = d.raw(d.request("POST", "/logout", sent+"\nContent-Type: application/x-www-form-urlencoded",
		"csrf="+url.QueryEscape(csrf)))
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.Negative(t, r.Cookies()[0].MaxAge)
}

// TestUnusableTokensAreNotDescribed: a client without access receives no path of this machine. The log has it.
func TestUnusableTokensAreNotDescribed(t *testing.T) {
	terminal, w := io.Pipe()
	d := newDesk(t, func(s *Server) { s.errors = slog.New(slog.NewTextHandler(w, nil)) })
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(terminal).ReadString('\n')
		line <- text
	}()
	file := filepath.Join(d.root, "state", "console", "tokens.json")
	require.NoError(t, os.Chmod(file, 0o644))
	r, body := d.get("/v1/runs")
	p := d.problem(r, body)
	require.Equal(t, http.StatusServiceUnavailable, p.Status)
	require.NotContains(t, body, d.root)
	require.Equal(t, api.CodeUnavailable, p.Code)
	require.Contains(t, <-line, file+" can be read or written by other users (mode 0644)")
}

// TestFailedLoginsAreLimited: a client that guesses gets no more answers, and a valid token still works.
func TestFailedLoginsAreLimited(t *testing.T) {
	d := newDesk(t)
	now := time.Now()
	d.s.tries.now = func() time.Time { return now }
	codes := map[int]int{}
	for range maxFailures + 5 {
		r, _ := d.raw(d.request("GET", "/v1/runs", "Authorization: Bearer pbk_guess", ""))
		codes[r.StatusCode]++
	}
	require.Equal(t, map[int]int{http.StatusUnauthorized: maxFailures, http.StatusTooManyRequests: 5}, codes)
	r, _ := d.raw(d.request("GET", "/login?key=guess", "", ""))
	require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
	require.Equal(t, "60", r.Header.Get("Retry-After"))
	r, _ = d.get("/v1/runs")
	require.Equal(t, http.StatusOK, r.StatusCode)
	r, _ = d.raw(d.request("GET", "/login?key="+d.link(), "", ""))
	require.Equal(t, http.StatusOK, r.StatusCode)
	now = now.Add(time.Minute)
	r, _ = d.raw(d.request("GET", "/v1/runs", "Authorization: Bearer pbk_guess", ""))
	require.Equal(t, http.StatusUnauthorized, r.StatusCode)
}

// TestBrowsersSeePages: a refusal is a page for a browser, and a problem for a program.
func TestBrowsersSeePages(t *testing.T) {
	d := newDesk(t)
	for header, row := range map[string]struct {
		code api.Code
		text string
	}{
		"Accept: text/html":                          {codeUnauthenticated, "starter console link"},
		"Host: elsewhere.example\nAccept: text/html": {codeForbidden, "does not answer as elsewhere.example"},
	} {
		r, body := d.raw(d.request("GET", "/runs", header, ""))
		require.Equal(t, statuses[row.code], r.StatusCode)
		require.Equal(t, "text/html; charset=utf-8", r.Header.Get("Content-Type"))
		require.Contains(t, body, row.text)
		r, body = d.raw(d.request("GET", "/runs", strings.TrimSuffix(header, "Accept: text/html"), ""))
		require.Equal(t, row.code, d.problem(r, body).Code)
	}
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n"} {
		r, body := d.raw(d.request("GET", path, "", ""))
		require.Equal(t, http.StatusOK, r.StatusCode)
		require.Equal(t, want, body)
	}
}

// TestForgedJournalProvesNoAuthor: the events of a directory that this machine has not recorded can be forged, and their
// chain too. The outputs show that; TestPages has what a page shows.
func TestForgedJournalProvesNoAuthor(t *testing.T) {
	d := newDesk(t)
	dir := filepath.Join(d.root, "runs", "letter")
	forgery.Journal(t, dir, "Write a letter.", "Owner approved.")
	get := func(path string) string {
		r, body := d.get("/v1/runs/" + letter + path)
		require.Equal(t, http.StatusOK, r.StatusCode, body)
		require.Contains(t, body, "Owner approved.")
		return body
	}
	require.Contains(t, get(""), `"received":true`)
	require.Regexp(t, `Journal \| \d+ events, chain [0-9a-f]{12}; not signed`, get("/evidence"))
	require.NoError(t, operations.Index(d.s.host.Settings.StateDir, letter, dir))
	require.Contains(t, get(""), `"received":false`)
}

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// link makes a one-time link as a starter does.
func link(t *testing.T, dir, token string, life time.Duration) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "links"), 0o700))
	sum := sha256.Sum256([]byte(token))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "links", hex.EncodeToString(sum[:])),
		[]byte(time.Now().Add(life).UTC().Format(time.RFC3339)+"\n"), 0o600))
}

// loginDir is the folder of a server's login.
func loginDir(args []string) string { return args[slices.Index(args, "--ui-login-dir")+1] }

// ask sends a request; pairs are headers.
func ask(t *testing.T, method, url string, cookies []*http.Cookie, pairs ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(testContext(t), method, url, strings.NewReader("{}"))
	require.NoError(t, err)
	for i := 0; i < len(pairs); i += 2 {
		r.Header.Set(pairs[i], pairs[i+1])
	}
	r.Host = r.Header.Get("Host")
	for _, c := range cookies {
		r.AddCookie(c)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

// TestWebUINeedsALogin follows a browser: refused, let in by a link once, and still known after a restart.
func TestWebUINeedsALogin(t *testing.T) {
	c, args := fresh(t)
	dir := loginDir(args)
	list := c.UI + "/api/v1/namespaces/book/workflows"
	for _, path := range []string{"/", "/namespaces/book/workflows", "/api/v1/settings", "/api/v1/namespaces", "/render",
		"/api/v1/namespaces/book/workflows", "/favicon.ico"} {
		resp, _ := ask(t, http.MethodGet, c.UI+path, nil)
		require.Equal(t, http.StatusUnauthorized, resp.StatusCode, path)
	}
	resp, _ := ask(t, http.MethodPost, list+"/w", nil)
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	forged := []*http.Cookie{{Name: cookieOf(t, c.UI), Value: "00.99999999999.00"}}
	resp, _ = ask(t, http.MethodGet, list, forged)
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)

	link(t, dir, "once", time.Hour)
	resp, _ = ask(t, http.MethodGet, c.UI+"/login?token=once", nil, "Sec-Purpose", "prefetch;prerender")
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode, "a prefetch does not use the link")
	resp, body := ask(t, http.MethodGet, c.UI+"/login?token=once&next=/namespaces/book", nil)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, body, `content="0;url=/namespaces/book"`)
	at := slices.IndexFunc(resp.Cookies(), func(k *http.Cookie) bool { return k.Name == cookieOf(t, c.UI) })
	require.GreaterOrEqual(t, at, 0)
	session := resp.Cookies()[at]
	require.True(t, session.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, session.SameSite)
	in := []*http.Cookie{{Name: session.Name, Value: session.Value}}
	resp, body = ask(t, http.MethodGet, list, in)
	require.Equal(t, http.StatusOK, resp.StatusCode, body)

	resp, body = ask(t, http.MethodGet, c.UI+"/login?token=once", nil)
	require.Equal(t, http.StatusForbidden, resp.StatusCode, "the link was used")
	require.False(t, slices.ContainsFunc(resp.Cookies(), func(k *http.Cookie) bool { return k.Name == session.Name }))
	require.Contains(t, body, "starter server ui")
	link(t, dir, "late", -time.Second)
	resp, _ = ask(t, http.MethodGet, c.UI+"/login?token=late", nil)
	require.Equal(t, http.StatusForbidden, resp.StatusCode, "the link has expired")
	info, err := os.Stat(filepath.Join(dir, "secret"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())

	require.Zero(t, c.stop(syscall.SIGTERM))
	u, err := url.Parse(c.UI)
	require.NoError(t, err)
	again := launch(t, append(args, "--ui-port", u.Port())...)
	resp, _ = ask(t, http.MethodGet, again.UI+"/api/v1/namespaces/book/workflows", in)
	require.Equal(t, http.StatusOK, resp.StatusCode, "the browser is logged in after a restart")
}

func cookieOf(t *testing.T, ui string) string {
	t.Helper()
	u, err := url.Parse(ui)
	require.NoError(t, err)
	return "passbook_ui_" + u.Port()
}

// TestWebUIRefusesOtherOrigins: a logged-in browser does not do what the pages of others want.
func TestWebUIRefusesOtherOrigins(t *testing.T) {
	c, args := fresh(t)
	link(t, loginDir(args), "once", time.Hour)
	resp, _ := ask(t, http.MethodGet, c.UI+"/login?token=once", nil)
	in := resp.Cookies()
	host := strings.TrimPrefix(c.UI, "http://")
	const api, nav = "/api/v1/namespaces/book/workflows", "/namespaces/book/workflows"
	for _, row := range []struct {
		name, method, path string
		headers            []string
		want               int
	}{
		{"its own page", http.MethodGet, api, []string{"Sec-Fetch-Site", "same-origin", "Origin", c.UI}, 200},
		{"a tunnel's port", http.MethodGet, api, []string{"Host", "localhost:9999"}, 200},
		{"typed", http.MethodGet, nav, []string{"Sec-Fetch-Site", "none"}, 200},
		{"a link elsewhere", http.MethodGet, nav, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate",
			"Sec-Fetch-Dest", "document"}, 200},
		{"DNS rebinding", http.MethodGet, api, []string{"Host", "attacker.example:80"}, 403},
		{"DNS rebinding of health", http.MethodGet, "/healthz", []string{"Host", "attacker.example"}, 403},
		{"no host", http.MethodGet, api, []string{"Host", "x"}, 403},
		{"another origin", http.MethodPost, api + "/w", []string{"Origin", "http://attacker.example"}, 403},
		{"another port", http.MethodPost, api + "/w", []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"no origin", http.MethodPost, api + "/w", []string{"Origin", "null"}, 403},
		{"reads for another site", http.MethodGet, api, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"reads for another port", http.MethodGet, api, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"a frame of another port", http.MethodGet, nav, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode",
			"navigate", "Sec-Fetch-Dest", "iframe"}, 403},
	} {
		t.Run(row.name, func(t *testing.T) {
			headers := row.headers
			if !slices.Contains(headers, "Host") {
				headers = append([]string{"Host", host}, headers...)
			}
			resp, body := ask(t, row.method, c.UI+row.path, in, headers...)
			require.Equal(t, row.want, resp.StatusCode, body)
			require.Empty(t, resp.Header.Get("Access-Control-Allow-Origin"))
		})
	}
}

func TestSessionsExpireAndBelongToASecret(t *testing.T) {
	dir := t.TempDir()
	l, err := newLogin(dir, "127.0.0.1:1")
	require.NoError(t, err)
	value, err := l.session()
	require.NoError(t, err)
	with := func(value string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: l.cookie, Value: value})
		return r
	}
	require.True(t, l.knows(with(value)))
	require.False(t, l.knows(with(strings.Replace(value, ".", ".9", 1))), "a later expiry")
	require.False(t, l.knows(with("")))
	require.False(t, l.knows(httptest.NewRequest(http.MethodGet, "/", nil)))
	l.now = func() time.Time { return time.Now().Add(sessionLife + time.Second) }
	require.False(t, l.knows(with(value)), "it has expired")
	l.now = time.Now
	require.NoError(t, os.Chmod(filepath.Join(dir, "secret"), 0o644))
	other, err := newLogin(dir, "127.0.0.1:1")
	require.NoError(t, err)
	require.False(t, other.knows(with(value)), "a secret that others could read is replaced")
}

func TestLinksStayInsideRun(t *testing.T) {
	for next, want := range map[string]string{
		"": "/", "/a?b=c": "/a?b=c", "//attacker.example": "/", "http://attacker.example": "/", "/\\x": "/",
		"javascript:x": "/", "/a\nb": "/",
	} {
		require.Equal(t, want, localPath(next), next)
	}
}

// TestCodecNeedsTheLogin: the Web UI passes payloads to the codec endpoint for logged-in browsers, with its token.
func TestCodecNeedsTheLogin(t *testing.T) {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "plain "+r.URL.Path)
	}))
	t.Cleanup(endpoint.Close)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("sesame\n"), 0o600))
	c, args := fresh(t, "--ui-codec-endpoint", endpoint.URL, "--ui-codec-token", "file:"+token)
	resp, _ := ask(t, http.MethodPost, c.UI+"/codec/decode", nil, "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	link(t, loginDir(args), "once", time.Hour)
	resp, _ = ask(t, http.MethodGet, c.UI+"/login?token=once", nil)
	in := resp.Cookies()
	resp, body := ask(t, http.MethodPost, c.UI+"/codec/decode", in, "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	require.Equal(t, "plain /decode", body)
	resp, _ = ask(t, http.MethodPost, c.UI+"/codec/other", in, "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	_, body = ask(t, http.MethodGet, c.UI+"/api/v1/settings", in)
	require.Contains(t, body, c.UI+"/codec")
	require.NotContains(t, body, "sesame")
}

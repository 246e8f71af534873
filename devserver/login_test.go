package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
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

// visitor is a browser at the Web UI.
type visitor struct {
	t       *testing.T
	ui      string
	cookies []*http.Cookie
}

// ask sends a request with headers, in pairs, and returns the status, the answer and its body.
func (v visitor) ask(method, path string, pairs ...string) (int, *http.Response, string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(testContext(v.t), method, v.ui+path, strings.NewReader("{}"))
	require.NoError(v.t, err)
	for i := 0; i < len(pairs); i += 2 {
		r.Header.Set(pairs[i], pairs[i+1])
	}
	r.Host = r.Header.Get("Host")
	for _, c := range v.cookies {
		r.AddCookie(c)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(v.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(v.t, err)
	return resp.StatusCode, resp, string(body)
}

func (v visitor) get(path string, pairs ...string) int {
	v.t.Helper()
	status, _, _ := v.ask(http.MethodGet, path, pairs...)
	return status
}

const apiPath, pagePath = "/api/v1/namespaces/book/workflows", "/namespaces/book/workflows"

// TestWebUINeedsALogin follows a browser: refused, logged in by a link once, and logged out by a restart.
func TestWebUINeedsALogin(t *testing.T) {
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
	dir := args[slices.Index(args, "--ui-login-dir")+1]
	u, err := url.Parse(c.UI)
	require.NoError(t, err)
	cookie := "passbook_ui_" + u.Port()
	stranger := visitor{t: t, ui: c.UI}
	for _, path := range []string{"/", pagePath, "/api/v1/settings", "/api/v1/namespaces", "/render", apiPath,
		"/favicon.ico"} {
		require.Equal(t, http.StatusUnauthorized, stranger.get(path), path)
	}
	for _, path := range []string{apiPath + "/w", "/codec/decode"} {
		status, _, _ := stranger.ask(http.MethodPost, path, "Sec-Fetch-Site", "same-origin")
		require.Equal(t, http.StatusUnauthorized, status, path)
	}
	forged := visitor{t, c.UI, []*http.Cookie{{Name: cookie, Value: "00.99999999999.00"}}}
	require.Equal(t, http.StatusUnauthorized, forged.get(apiPath))

	link(t, dir, "once", time.Hour)
	require.Equal(t, http.StatusServiceUnavailable, stranger.get("/login?token=once", "Sec-Purpose", "prefetch;prerender"),
		"a prefetch does not use the link")
	status, resp, body := stranger.ask(http.MethodGet, "/login?token=once&next=/namespaces/book")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `content="0;url=/namespaces/book"`)
	session := cookieOf(resp, cookie)
	require.NotNil(t, session)
	require.True(t, session.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, session.SameSite)
	in := visitor{t, c.UI, []*http.Cookie{{Name: session.Name, Value: session.Value}}}
	require.Equal(t, http.StatusOK, in.get(apiPath))

	status, resp, body = stranger.ask(http.MethodGet, "/login?token=once")
	require.Equal(t, http.StatusForbidden, status, "the link was used")
	require.Nil(t, cookieOf(resp, cookie))
	require.Contains(t, body, "starter server ui")
	link(t, dir, "late", -time.Second)
	require.Equal(t, http.StatusForbidden, stranger.get("/login?token=late"), "the link has expired")
	t.Run("origins", func(t *testing.T) { testOrigins(t, in) })
	t.Run("codec", func(t *testing.T) { testCodec(t, in) })

	require.Zero(t, c.stop(syscall.SIGTERM))
	in.ui = launch(t, append(args, "--ui-port", u.Port())...).UI
	require.Equal(t, http.StatusUnauthorized, in.get(apiPath), "a program at its address may have the cookie")
}

func cookieOf(resp *http.Response, name string) *http.Cookie {
	for _, c := range resp.Cookies() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// testOrigins: a logged-in browser does not do what pages of other sites request.
func testOrigins(t *testing.T, in visitor) {
	own, attacker := strings.TrimPrefix(in.ui, "http://"), "http://attacker.example"
	for _, row := range []struct {
		name, method, path string
		headers            []string
		want               int
	}{
		{"its own page", http.MethodGet, apiPath, []string{"Sec-Fetch-Site", "same-origin", "Origin", in.ui}, 200},
		{"a tunnel's port", http.MethodGet, apiPath, []string{"Host", "localhost:9999"}, 200},
		{"typed", http.MethodGet, pagePath, []string{"Sec-Fetch-Site", "none"}, 200},
		{"a link of another site", http.MethodGet, pagePath, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode",
			"navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"DNS rebinding", http.MethodGet, apiPath, []string{"Host", "attacker.example:80"}, 403},
		{"DNS rebinding of health", http.MethodGet, "/healthz", []string{"Host", "attacker.example"}, 403},
		{"no host", http.MethodGet, apiPath, []string{"Host", "x"}, 403},
		{"another origin", http.MethodPost, apiPath + "/w", []string{"Origin", attacker}, 403},
		{"another port", http.MethodPost, apiPath + "/w", []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"no origin", http.MethodPost, apiPath + "/w", []string{"Origin", "null"}, 403},
		{"reads for another site", http.MethodGet, apiPath, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"reads for another port", http.MethodGet, apiPath, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"a frame of another port", http.MethodGet, pagePath, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode",
			"navigate", "Sec-Fetch-Dest", "iframe"}, 403},
	} {
		headers := append([]string{"Host", own}, row.headers...)
		status, resp, body := in.ask(row.method, row.path, headers...)
		require.Equal(t, row.want, status, "%s: %s", row.name, body)
		require.Empty(t, resp.Header.Get("Access-Control-Allow-Origin"), row.name)
	}
}

// testCodec: the Web UI passes payloads to the codec endpoint for logged-in browsers, with its token.
func testCodec(t *testing.T, in visitor) {
	status, _, body := in.ask(http.MethodPost, "/codec/decode", "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, "plain /decode", body)
	status, _, _ = in.ask(http.MethodPost, "/codec/other", "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusNotFound, status)
	_, _, body = in.ask(http.MethodGet, "/api/v1/settings")
	require.Contains(t, body, in.ui+"/codec")
	require.NotContains(t, body, "sesame")
}

func TestSessionsExpire(t *testing.T) {
	l, err := newLogin(t.TempDir(), "127.0.0.1:1")
	require.NoError(t, err)
	value := l.session()
	with := func(value string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: l.cookie, Value: value})
		return r
	}
	require.True(t, l.knows(with(value)))
	require.False(t, l.knows(with("")))
	require.False(t, l.knows(httptest.NewRequest(http.MethodGet, "/", nil)))
	l.now = func() time.Time { return time.Now().Add(sessionLife + time.Second) }
	require.False(t, l.knows(with(value)), "it has expired")
}

func TestLoginRedirectsStayLocal(t *testing.T) {
	for next, want := range map[string]string{
		"": "/", "/a?b=c": "/a?b=c", "//attacker.example": "/", "http://attacker.example": "/", "/\\x": "/",
		"javascript:x": "/", "/a\nb": "/",
	} {
		require.Equal(t, want, localPath(next), next)
	}
}

package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
)

// hostileRow is a request that must be refused. TOKEN, SESSION and CSRF stand for valid ones.
type hostileRow struct {
	name, method, path, header, body string
	status                           int
}

const (
	inJSON = "\nContent-Type: application/json"
	aRun   = "/v1/runs/" + letter
)

func hostileRows() []hostileRow {
	return []hostileRow{
		{"host of another site", "GET", "/v1/runs", "TOKEN\nHost: evil.example", "", 403},
		{"host of another site with the port", "GET", "/v1/runs", "TOKEN\nHost: evil.example:8400", "", 403},
		{"host that begins as this machine", "GET", "/v1/runs", "TOKEN\nHost: 127.0.0.1.evil.example", "", 403},
		{"host that ends as this machine", "GET", "/v1/runs", "TOKEN\nHost: evil-localhost", "", 403},
		{"host of all addresses", "GET", "/v1/runs", "TOKEN\nHost: 0.0.0.0:8400", "", 403},
		{"no host", "GET", "/v1/runs", "TOKEN\nHost: ", "", 403},
		{"two hosts", "GET", "/v1/runs", "TOKEN\nHost: localhost\nHost: evil.example", "", 400},
		{"host of another site for a login", "GET", "/login?key=x", "Host: evil.example", "", 403},

		{"origin of another site", "POST", aRun + "/pause", "TOKEN\nOrigin: https://evil.example" + inJSON, "{}", 403},
		{"origin of another site that claims to be ours", "POST", aRun + "/pause",
			"TOKEN\nOrigin: https://evil.example\nSec-Fetch-Site: same-origin" + inJSON, "{}", 403},
		{"no origin of a page", "POST", aRun + "/pause", "TOKEN\nOrigin: null" + inJSON, "{}", 403},
		{"origin of another port", "POST", aRun + "/pause", "SESSION\nCSRF\nOrigin: http://127.0.0.1:1" + inJSON, "{}", 403},
		{"origin with another scheme", "POST", aRun + "/pause", "TOKEN\nOrigin: https://HERE" + inJSON, "{}", 403},
		{"two origins", "POST", aRun + "/pause", "TOKEN\nOrigin: http://HERE\nOrigin: http://evil.example" + inJSON, "{}",
			403},
		{"request of a page of another site", "POST", aRun + "/pause", "SESSION\nCSRF\nSec-Fetch-Site: cross-site" + inJSON,
			"{}", 403},
		{"request of a page of another port", "GET", "/v1/runs", "SESSION\nSec-Fetch-Site: same-site", "", 403},
		{"picture in a page of another site", "GET", aRun + "/report",
			"SESSION\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: no-cors\nSec-Fetch-Dest: image", "", 403},
		{"frame in a page of another site", "GET", "/",
			"SESSION\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: iframe", "", 403},
		{"form of another site", "POST", "/", "SESSION\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\n" +
			"Sec-Fetch-Dest: document\nContent-Type: application/x-www-form-urlencoded", "csrf=CSRFVALUE", 403},

		{"no token", "GET", "/v1/runs", "", "", 401},
		{"wrong token", "GET", "/v1/runs", "Authorization: Bearer pbk_wrong", "", 401},
		{"revoked token", "GET", "/v1/runs", "REVOKED", "", 401},
		{"token in lower case", "GET", "/v1/runs", "LOWER", "", 401},
		{"digest of a token", "GET", "/v1/runs", "DIGEST", "", 401},
		{"token with another scheme", "GET", "/v1/runs", "BASIC", "", 401},
		{"two tokens", "GET", "/v1/runs", "TOKEN\nAuthorization: Bearer pbk_wrong", "", 401},
		{"wrong token with a session", "GET", "/v1/runs", "SESSION\nAuthorization: Bearer pbk_wrong", "", 401},
		{"token in the address", "GET", "/v1/runs?token=TOKENVALUE", "", "", 401},
		{"description without a token", "GET", "/openapi.json", "", "", 401},
		{"page without a session", "GET", "/", "", "", 401},
		{"decision of a reader", "POST", aRun + "/decide", "READER" + inJSON, `{"action":"continue"}`, 403},
		{"pause by a reader", "POST", aRun + "/pause", "READER" + inJSON, "{}", 403},
		{"cancel by who decides", "POST", aRun + "/cancel", "DECIDER" + inJSON, "{}", 403},
		{"start by who decides", "POST", "/v1/runs", "DECIDER" + inJSON, `{"config":"x.yaml"}`, 403},

		{"forged session", "GET", "/v1/runs", "Cookie: COOKIENAME=00.9999999999.00", "", 401},
		{"session under a name of all ports", "GET", "/v1/runs", "SESSION\nHost: 127.0.0.1:8400", "", 401},
		{"session of localhost", "GET", "/v1/runs", "SESSION\nHost: localhost", "", 401},
		{"login under a name of all ports", "GET", "/login?key=NEWLINK", "Host: [::1]:8400", "", 403},
		{"session of another console", "GET", "/v1/runs", "OTHERSESSION", "", 401},
		{"no CSRF token", "POST", aRun + "/pause", "SESSION" + inJSON, "{}", 403},
		{"form without it", "POST", "/logout", "SESSION\nContent-Type: application/x-www-form-urlencoded", "a=b", 403},
		{"CSRF token of another session", "POST", aRun + "/pause", "SESSION\nX-CSRF-Token: OTHERCSRF" + inJSON, "{}", 403},
		{"CSRF token in the address", "POST", aRun + "/pause?csrf=CSRFVALUE", "SESSION" + inJSON, "{}", 403},
		{"CSRF token in JSON", "POST", aRun + "/pause", "SESSION" + inJSON, `{"csrf":"CSRFVALUE"}`, 403},
		{"used login link", "GET", "/login?key=USEDLINK", "", "", 403},
		{"path as a login link", "GET", "/login?key=../session.key", "", "", 403},

		{"path above the runs", "GET", "/v1/runs/..%2f..%2fetc", "TOKEN", "", 404},
		{"dots in the path", "GET", "/v1/runs/../../state/links.key", "TOKEN", "", 404},
		{"encoded dots in the path", "GET", "/v1/runs/%2e%2e/events", "TOKEN", "", 404},
		{"empty part of the path", "GET", "//v1/runs", "TOKEN", "", 404},
		{"encoded backslash", "GET", "/v1/runs/..%5c..%5cetc", "TOKEN", "", 404},
		{"NUL in the path", "GET", "/v1/runs/x%00", "TOKEN", "", 404},
		{"directory instead of an id", "GET", "/v1/runs/letter", "TOKEN", "", 404},
		{"dot as an id", "GET", "/v1/runs/.hidden/events", "TOKEN", "", 404},
		{"file of the run as a picture", "GET", aRun + "/screenshots/1/meta.json", "TOKEN", "", 404},
		{"no number of a pass", "GET", aRun + "/passes/x", "TOKEN", "", 422},
		{"page of a path", "GET", "/static/..%2fsession.key", "TOKEN", "", 404},
		{"missing pass", "GET", aRun + "/passes/999", "TOKEN", "", 404},
		{"run in the body", "POST", aRun + "/pause", "TOKEN" + inJSON, `{"run":"/etc"}`, 422},
		{"run in the query", "GET", aRun + "/diff?run=/etc", "TOKEN", "", 422},
		{"MCP", "POST", "/mcp", "TOKEN\nAccept: application/json, text/event-stream" + inJSON,
			`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 404},

		{"GET to decide", "GET", aRun + "/decide?action=continue", "TOKEN", "", 405},
		{"POST to a status", "POST", aRun, "TOKEN\nX-HTTP-Method-Override: GET" + inJSON, "{}", 405},
		{"other method in a header", "GET", aRun + "/cancel", "TOKEN\nX-HTTP-Method-Override: POST", "", 405},
		{"DELETE of a run", "DELETE", aRun, "TOKEN", "", 405},
		{"TRACE", "TRACE", "/v1/runs", "TOKEN", "", 405},
		{"OPTIONS of a page of another site", "OPTIONS", "/v1/runs", "Origin: https://evil.example", "", 403},
		{"unknown method", "PATCH", aRun, "TOKEN" + inJSON, "{}", 405},

		{"text", "POST", aRun + "/pause", "TOKEN\nContent-Type: text/plain", "{}", 415},
		{"form", "POST", aRun + "/pause", "SESSION\nContent-Type: application/x-www-form-urlencoded", "csrf=CSRFVALUE", 415},
		{"no type", "POST", aRun + "/pause", "TOKEN", "{}", 415},
		{"huge body", "POST", aRun + "/pause", "TOKEN" + inJSON, `{"note":"` + strings.Repeat("x", maxBody) + `"}`, 413},
		{"body that claims to be huge", "POST", aRun + "/pause", "TOKEN\nContent-Length: 99999999999" + inJSON, "{", 413},
		{"slow body", "POST", aRun + "/pause", "TOKEN\nContent-Length: 100" + inJSON, "{", 408},
		{"two lengths", "POST", aRun + "/pause", "TOKEN\nContent-Length: 2\nTransfer-Encoding: chunked" + inJSON, "{}", 408},
		{"array", "POST", aRun + "/pause", "TOKEN" + inJSON, "[]", 422},
		{"two objects", "POST", aRun + "/pause", "TOKEN" + inJSON, "{}{}", 422},
		{"unknown key", "POST", aRun + "/pause", "TOKEN" + inJSON, `{"now":true,"admin":true}`, 422},
		{"another type", "POST", aRun + "/pause", "TOKEN" + inJSON, `{"now":"yes"}`, 422},
		{"deep nesting", "POST", aRun + "/pause", "TOKEN" + inJSON, strings.Repeat(`{"a":`, 100_000), 422},
		{"huge header", "GET", "/v1/runs", "TOKEN\nX-A: " + strings.Repeat("x", maxHeader+8<<10), "", 431},
		{"key with spaces", "POST", aRun + "/pause", "TOKEN\nIdempotency-Key: a b" + inJSON, "{}", 422},
		{"huge key", "POST", aRun + "/pause", "TOKEN\nIdempotency-Key: " + strings.Repeat("x", 300) + inJSON, "{}", 422},
		{"negative event", "GET", aRun + "/events?after=-1", "TOKEN", "", 422},
		{"text as an event", "GET", aRun + "/events", "TOKEN\nLast-Event-ID: x", "", 422},
		{"huge limit", "GET", "/v1/runs?limit=1000000", "TOKEN", "", 422},
		{"unknown parameter", "GET", "/v1/runs?admin=1", "TOKEN", "", 422},
		{"unknown status", "GET", "/v1/runs?status=%3Cscript%3E", "TOKEN", "", 422},
	}
}

// TestHostileRequests sends requests that must be refused. None reaches an operation, and nothing is written.
func TestHostileRequests(t *testing.T) {
	d := newDesk(t, func(s *Server) { s.bodyTime = 300 * time.Millisecond })
	d.s.tries.now = func() time.Time { return time.Time{} }
	other := newDesk(t)
	revoked, err := d.s.tokens.Create(t.Context(), "gone", api.CanOperate, time.Now())
	require.NoError(t, err)
	require.NoError(t, d.s.tokens.Revoke(t.Context(), "gone"))
	used := d.link()
	r, _ := d.raw(d.request("GET", "/login?key="+used, "", ""))
	require.Equal(t, http.StatusOK, r.StatusCode)
	second := d.s.logins.NewSession()
	listed, err := d.s.tokens.List()
	require.NoError(t, err)
	token := d.tokens[api.CanOperate]
	fill := strings.NewReplacer(
		"TOKENVALUE", token, "TOKEN\n", d.with(api.CanOperate)+"\n", "READER", d.with(api.CanRead),
		"DECIDER", d.with(api.CanDecide), "REVOKED", "Authorization: Bearer "+revoked,
		"LOWER", "Authorization: Bearer "+strings.ToLower(token), "DIGEST", "Authorization: Bearer "+listed[0].Digest,
		"BASIC", "Authorization: Basic "+token, "OTHERSESSION", "Cookie: "+other.cookie.Name+"="+other.cookie.Value,
		"SESSION", "Cookie: "+d.cookie.Name+"="+d.cookie.Value, "COOKIENAME", d.cookie.Name,
		"CSRFVALUE", d.csrf(d.cookie), "OTHERCSRF", d.csrf(second), "CSRF\n", "X-CSRF-Token: "+d.csrf(d.cookie)+"\n",
		"USEDLINK", used, "NEWLINK", d.link(), "HERE", d.at)
	before := d.files()
	for _, row := range hostileRows() {
		d.s.tries.failed = map[string]failures{}
		r, body := d.raw(d.request(row.method, fill.Replace(row.path), fill.Replace(row.header+"\n"), fill.Replace(row.body)))
		require.Equal(t, row.status, r.StatusCode, "%s: %s", row.name, body)
		require.Empty(t, r.Cookies(), row.name)
		require.Empty(t, r.Header.Get("Access-Control-Allow-Origin"), row.name)
		require.NotContains(t, body, "root:", row.name)
		if r.Header.Get("Content-Type") == "application/problem+json" {
			d.problem(r, body)
		}
	}
	require.Empty(t, d.connected, "a hostile request reached an operation")
	require.Equal(t, before, d.files())

	// the same requests, as they should be, are not refused
	for _, header := range []string{"TOKEN", "SESSION\nCSRF", "TOKEN\nOrigin: http://HERE", "SESSION\nCSRF\n" +
		"Origin: http://HERE\nSec-Fetch-Site: same-origin"} {
		r, body := d.raw(d.request("POST", aRun+"/pause", fill.Replace(header+inJSON+"\n"), "{}"))
		require.Equal(t, http.StatusServiceUnavailable, r.StatusCode, body)
	}
	r, _ = d.raw(d.request("GET", "/", fill.Replace("SESSION\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\n"+
		"Sec-Fetch-Dest: document\n"), ""))
	require.Equal(t, http.StatusOK, r.StatusCode, "a link of another site")
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": contentPolicy, "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"} {
		require.Equal(t, want, r.Header.Get(name))
	}
}

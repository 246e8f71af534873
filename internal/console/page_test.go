package console

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

const asPage = "\nAccept: text/html\nContent-Type: application/x-www-form-urlencoded"

// TestFormSurvivesExpiredSession: what a user has entered is shown again if the session has ended, or is another one.
func TestFormSurvivesExpiredSession(t *testing.T) {
	d := newDesk(t)
	form := url.Values{"text": {"An hour of <i>work</i>"}, "csrf": {"old"}}.Encode()
	path := "/runs/" + letter + "/do/steer"
	for name, row := range map[string]struct {
		header string
		code   int
		text   string
	}{
		"no session": {"", http.StatusUnauthorized, "You are logged out"},
		"another session": {"\nCookie: " + d.cookie.Name + "=" + d.cookie.Value, http.StatusForbidden,
			"from an earlier login"},
	} {
		r, body := d.raw(d.request("POST", path, "Origin: http://"+d.at+row.header+asPage, form))
		require.Equal(t, row.code, r.StatusCode, name)
		require.Contains(t, body, row.text)
		require.Contains(t, body, "An hour of &lt;i&gt;work&lt;/i&gt;</textarea>", name)
		require.Contains(t, body, `href="`+path+`"`)
		require.NotContains(t, body, "old", "no token is repeated")
	}
	require.Empty(t, d.connected, "nothing was done")
	r, body := d.raw(d.request("POST", path, "Origin: http://evil.example"+asPage, form))
	require.Equal(t, http.StatusForbidden, r.StatusCode)
	require.NotContains(t, body, "An hour", "another site gets nothing")
}

// TestLinkFromAnotherSiteOpensPage: the browser sends no strict cookie with it, so the page leads there once more.
func TestLinkFromAnotherSiteOpensPage(t *testing.T) {
	d := newDesk(t)
	from := func(site string) string {
		_, body := d.raw(d.request("GET", "/runs/"+letter+"?all", "Accept: text/html\nSec-Fetch-Mode: navigate\n"+
			"Sec-Fetch-Dest: document\nSec-Fetch-Site: "+site, ""))
		return body
	}
	require.Contains(t, from("cross-site"), `content="0;url=/runs/`+letter+`?all"`)
	require.NotContains(t, from("same-origin"), "refresh", "it leads there only once")
	require.Contains(t, from("same-origin"), "starter console link")
	require.NotContains(t, from("none"), "refresh")
}

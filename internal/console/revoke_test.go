package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
)

// TestRevokedLoginEndsWhatItFollows: a session that is revoked is refused, and its open requests end; another session
// stays. The same holds for a token.
func TestRevokedLoginEndsWhatItFollows(t *testing.T) {
	d := newDesk(t)
	other := d.s.logins.NewSession()
	cookie := "Cookie: " + d.cookie.Name + "=" + d.cookie.Value
	answers := make(chan string, 3)
	answer := func() string {
		select {
		case text := <-answers:
			return text
		case <-time.After(15 * time.Second):
			t.Fatal("the stream continues")
			return ""
		}
	}
	follow := func(path, header string) {
		r, body := d.raw(d.request("GET", "/v1/runs/"+letter+path, header, ""))
		answers <- r.Status[:3] + " " + body
	}
	go follow("/events?after=6", cookie+"\nAccept: text/event-stream")
	require.Eventually(t, func() bool { return d.s.streams.Load() == 1 }, 10*time.Second, time.Millisecond)
	go follow("/events?after=6", d.with(api.CanRead)+"\nAccept: text/event-stream")
	require.Eventually(t, func() bool { return d.s.streams.Load() == 2 }, 10*time.Second, time.Millisecond)

	s, ok := d.s.logins.Session(&http.Request{Header: http.Header{
		"Cookie": {strings.TrimPrefix(cookie, "Cookie: ")}}})
	require.True(t, ok)
	require.True(t, d.s.logins.End(s.ID))
	r, body := d.raw(d.request("GET", "/v1/runs", cookie, ""))
	require.Equal(t, codeUnauthenticated, d.problem(r, body).Code)
	require.Contains(t, answer(), "event: problem\ndata: "+oneLine(unauthenticated()))
	require.NoError(t, d.s.tokens.Revoke(t.Context(), "to-read"))
	require.Contains(t, answer(), "event: problem\ndata: "+oneLine(unauthenticated()))
	r, _ = d.raw(d.request("GET", "/v1/runs", "Cookie: "+other.Name+"="+other.Value, ""))
	require.Equal(t, http.StatusOK, r.StatusCode)
}

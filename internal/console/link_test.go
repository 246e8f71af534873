package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/links"
)

// TestLinks: a link reaches the question of its run, with its receiver as the identity, and nothing else.
func TestLinks(t *testing.T) {
	var seen []string
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := access.From(r.Context())
		require.True(t, ok)
		require.Equal(t, access.Identity{Name: "$TEAM", Can: api.CanDecide, Base: id.Base,
			Question: "draft:1:7:abc"}, id)
		require.True(t, strings.HasPrefix(id.Base, links.Path))
		seen = append(seen, r.Method+" "+r.URL.Path)
		w.WriteHeader(http.StatusOK)
	})
	d := newDesk(t, func(s *Server) { s.handler = s.guard(s.linked(pages)) })
	made := func(life time.Duration) string {
		s := d.s.host.Settings
		s.Console.URL, s.Console.LinkExpires = "https://passbook.example.org", life
		m, err := links.Load(s)
		require.NoError(t, err)
		address, err := m.Answer(letter, "draft:1:7:abc", "$TEAM", time.Time{})
		require.NoError(t, err)
		return strings.TrimPrefix(address, "https://passbook.example.org")
	}
	link := made(time.Hour)
	for _, c := range []struct {
		method, path string
		code         int
	}{
		{"GET", link, 200}, {"HEAD", link, 200}, {"GET", link + "/pictures/cycle-1/full.png", 200},
		{"POST", link + "/do/decide", 200},
		{"POST", link, 404}, {"GET", link + "/do/decide", 404}, {"POST", link + "/do/cancel", 404},
		{"GET", link + "/artifact", 404}, {"GET", link + "/pictures/../artifact", 404}, {"DELETE", link, 404},
		{"GET", made(-time.Second), 410}, {"POST", made(-time.Second) + "/do/decide", 410},
		{"GET", links.Path, 403}, {"GET", link[:len(link)-1], 403}, {"POST", link + "A/do/decide", 403},
	} {
		r, body := d.raw(d.request(c.method, c.path, "Origin: http://"+d.at, ""))
		require.Equal(t, c.code, r.StatusCode, "%s %s: %s", c.method, c.path, body)
	}
	run := " /runs/" + letter + "/"
	require.Equal(t, []string{"GET" + run + "question", "HEAD" + run + "question", "GET" + run +
		"pictures/cycle-1/full.png", "POST" + run + "do/decide"}, seen)

	r, _ := d.raw(d.request("POST", link+"/do/decide", "Origin: https://elsewhere.example.org", ""))
	require.Equal(t, http.StatusForbidden, r.StatusCode, "a page of another origin")
	for range maxFailures {
		r, _ = d.raw(d.request("GET", links.Path+"guess", "", ""))
	}
	require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
	r, _ = d.raw(d.request("GET", link, "", ""))
	require.Equal(t, http.StatusOK, r.StatusCode, "a valid link is accepted at any rate")
}

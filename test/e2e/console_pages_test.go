package e2e_test

import (
	"context"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/workflows/contract"
)

// reader is a browser without scripts that is logged in to a console.
type reader struct {
	t    *testing.T
	base string
	http.Client
}

// get returns a page.
func (b *reader) get(path string) string {
	b.t.Helper()
	answer, err := b.Get(b.base + path)
	return b.page(answer, err)
}

func (b *reader) page(answer *http.Response, err error) string {
	b.t.Helper()
	require.NoError(b.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(b.t, err)
	require.Equal(b.t, http.StatusOK, answer.StatusCode, string(text))
	return string(text)
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)

// send fills in a form of a page and sends it.
func (b *reader) send(page, form, action string, fields url.Values) string {
	b.t.Helper()
	_, inside, ok := strings.Cut(b.get(page), form)
	require.True(b.t, ok, "%s has no form", page)
	for _, m := range hidden.FindAllStringSubmatch(inside, -1) {
		fields.Set(m[1], html.UnescapeString(m[2]))
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+action, strings.NewReader(fields.Encode()))
	require.NoError(b.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", b.base)
	answer, err := b.Do(r)
	return b.page(answer, err)
}

// loginLink makes a login link. The printed one is of the console that started last, and works at each.
func (h *environment) loginLink(c *console) string {
	h.t.Helper()
	link, err := url.Parse(strings.TrimSpace(h.starter("console", "link")))
	require.NoError(h.t, err)
	return c.url + link.RequestURI()
}

// logIn opens the login link of a console.
func (h *environment) logIn(t *testing.T, c *console) *reader {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	at, err := url.Parse(c.at)
	require.NoError(t, err)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) { // browsers resolve its name, not all systems
		return (&net.Dialer{}).DialContext(ctx, network, at.Host)
	}
	b := &reader{t: t, base: c.url, Client: http.Client{Jar: jar, Transport: &http.Transport{DialContext: dial}}}
	answer, err := b.Get(h.loginLink(c))
	b.page(answer, err)
	return b
}

// byPages sends every message with the forms of the pages.
func byPages(b *reader) storyClient {
	return func(tr *trial, verb string, m contract.Message) {
		b.t = tr.t
		id := metaOf(tr.t, tr.dir).RunID
		if verb == contract.VerbSteer {
			path := "/runs/" + id + "/do/steer"
			b.send(path, `method="post" action="`+path+`"`, path, url.Values{"text": {m.Text}, "role": {m.Role}})
			return
		}
		b.send("/inbox?run="+id, `<form class="answer"`, "/runs/"+id+"/do/decide", url.Values{"action": {m.Action},
			"feedback": {m.Feedback}, "note": {m.Note}, "by": {m.By}})
	}
}

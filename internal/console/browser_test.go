package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/browser/tab"
)

// TestCookieStaysWithItsConsole logs a real browser in. A server on another port of this machine gets no cookie, and
// the next console at the same address refuses that of the last one.
func TestCookieStaysWithItsConsole(t *testing.T) {
	state, cookies := t.TempDir(), make(chan string, 8)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			cookies <- r.Header.Get("Cookie")
		}
	}))
	t.Cleanup(thief.Close)
	base, end := startedIn(t, state, Listening{Address: "127.0.0.1:0"})
	at, err := url.Parse(base)
	require.NoError(t, err)
	b := tab.Open(t, base, 2*time.Minute)
	open := func(address string) string {
		t.Helper()
		require.NoError(t, chromedp.Do(b.Context, chromedp.Navigate(address)))
		title, err := chromedp.Run(b.Context, chromedp.Title())
		require.NoError(t, err)
		return title
	}
	link, err := Link(state, time.Now())
	require.NoError(t, err)
	require.NoError(t, chromedp.Do(b.Context, chromedp.Navigate(link)))
	require.Eventually(t, func() bool { // the page after the login leads there
		title, err := chromedp.Run(b.Context, chromedp.Title())
		return err == nil && title == "Passbook · Passbook"
	}, time.Minute, 20*time.Millisecond)
	for _, name := range []string{"127.0.0.1", "localhost"} {
		open(strings.Replace(thief.URL, "127.0.0.1", name, 1))
		require.Empty(t, <-cookies, name)
	}
	require.Equal(t, "Passbook · Passbook", open(base+"/"))
	require.NoError(t, end())

	again, end := startedIn(t, state, Listening{Address: "127.0.0.1:" + at.Port()})
	defer func() { require.NoError(t, end()) }()
	require.Equal(t, base, again, "the name is kept")
	require.Equal(t, "Log in · Passbook", open(base+"/"))
}

package login

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func open(_ *testing.T, state string) *Sessions { return Open(state, "8400", false) }

func link(t *testing.T, state string) string {
	t.Helper()
	path, err := NewLink(state, time.Now())
	require.NoError(t, err)
	secret, ok := strings.CutPrefix(path, "/login?key=")
	require.True(t, ok, path)
	return secret
}

func TestLinkWorksOnce(t *testing.T) {
	state := t.TempDir()
	b, secret := open(t, state), link(t, state)
	var used atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if ok, err := open(t, state).Use(secret); err == nil && ok {
				used.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, used.Load())
	for _, wrong := range []string{secret, "", "../session.key", "x"} {
		ok, err := b.Use(wrong)
		require.NoError(t, err)
		require.False(t, ok, wrong)
	}
}

func TestLinkExpires(t *testing.T) {
	state := t.TempDir()
	b, secret := open(t, state), link(t, state)
	b.Now = func() time.Time { return time.Now().Add(LinkLife) }
	ok, err := b.Use(secret)
	require.NoError(t, err)
	require.False(t, ok)

	secret = link(t, state)
	b.Now = func() time.Time { return time.Now().Add(-time.Hour) } // the clock was set back
	ok, err = b.Use(secret)
	require.NoError(t, err)
	require.False(t, ok)

	link(t, state)
	_, err = NewLink(state, time.Now().Add(LinkLife+time.Second))
	require.NoError(t, err)
	entries, err := os.ReadDir(b.Links)
	require.NoError(t, err)
	require.Len(t, entries, 1, "an expired link is removed")
}

func TestLinkThatCannotBeWritten(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(state, "console"), nil, 0o600))
	_, err := NewLink(state, time.Now())
	require.ErrorContains(t, err, "make a login link: ")
}

// with is a request of a browser with a cookie.
func with(c *http.Cookie) *http.Request {
	r := &http.Request{Header: http.Header{}}
	r.AddCookie(c)
	return r
}

func TestSessions(t *testing.T) {
	b := open(t, t.TempDir())
	now := time.Now()
	b.Now = func() time.Time { return now }
	requests := make([]*http.Request, 2)
	for i := range requests {
		cookie := b.NewSession()
		require.True(t, cookie.HttpOnly)
		require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
		requests[i] = with(cookie)
		now = now.Add(time.Minute)
	}
	first, ok := b.Session(requests[0])
	require.True(t, ok)
	second, ok := b.Session(requests[1])
	require.True(t, ok)
	require.NotEqual(t, first.CSRF, second.CSRF)
	for _, wrong := range []string{"", first.ID, first.CSRF} {
		_, ok = b.Session(with(&http.Cookie{Name: b.Cookie, Value: wrong}))
		require.False(t, ok, wrong)
	}
	for _, wrong := range []string{"", "x", first.ID[:6]} {
		require.False(t, b.End(wrong), wrong)
	}
	require.True(t, b.End(first.ID))
	_, ok = b.Session(requests[0])
	require.False(t, ok)
	_, ok = b.Session(requests[1])
	require.True(t, ok)
	now = now.Add(SessionLife)
	_, ok = b.Session(requests[1])
	require.False(t, ok, "expired")
	require.Empty(t, b.open)
}

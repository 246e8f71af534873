package login

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func open(t *testing.T, state string) *Sessions {
	t.Helper()
	b, err := Open(state, "8400", false)
	require.NoError(t, err)
	return b
}

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

	link(t, state)
	_, err = NewLink(state, time.Now().Add(LinkLife+time.Second))
	require.NoError(t, err)
	entries, err := os.ReadDir(b.Links)
	require.NoError(t, err)
	require.Len(t, entries, 1, "an expired link is removed")
}

func TestSessions(t *testing.T) {
	state := t.TempDir()
	b := open(t, state)
	cookie, err := b.NewSession()
	require.NoError(t, err)
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	with := func(name, value string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		require.NoError(t, err)
		r.AddCookie(&http.Cookie{Name: name, Value: value})
		return r
	}
	csrf, ok := open(t, state).Session(with(cookie.Name, cookie.Value)) // the key is kept
	require.True(t, ok)
	require.NotEmpty(t, csrf)
	require.NotContains(t, cookie.Value, csrf)
	other, err := b.NewSession()
	require.NoError(t, err)
	another, _ := b.Session(with(other.Name, other.Value))
	require.NotEqual(t, csrf, another)

	claims := cookie.Value[:strings.LastIndexByte(cookie.Value, '.')]
	for _, forged := range []string{"", ".", claims, claims + ".", claims + "." + csrf,
		strings.Replace(cookie.Value, ".", ".9", 1), cookie.Value + "0"} {
		_, ok := b.Session(with(cookie.Name, forged))
		require.False(t, ok, forged)
	}
	_, ok = b.Session(with("passbook_console_8401", cookie.Value))
	require.False(t, ok, "of another port")
	elsewhere, err := Open(state, "8401", false)
	require.NoError(t, err)
	_, ok = elsewhere.Session(with(elsewhere.Cookie, cookie.Value))
	require.False(t, ok, "the console of another port has the same key")
	b.Now = func() time.Time { return time.Now().Add(SessionLife) }
	_, ok = b.Session(with(cookie.Name, cookie.Value))
	require.False(t, ok, "expired")
}

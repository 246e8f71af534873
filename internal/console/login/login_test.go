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

func TestSessions(t *testing.T) {
	state := t.TempDir()
	b := open(t, state)
	cookie, err := b.NewSession(&http.Request{})
	require.NoError(t, err)
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	with := func(name, value string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		require.NoError(t, err)
		r.AddCookie(&http.Cookie{Name: name, Value: value})
		return r
	}
	session := func(b *Sessions, name, value string) Current {
		s, ok, err := b.Session(with(name, value))
		require.NoError(t, err)
		if !ok {
			return Current{}
		}
		return s
	}
	csrf := session(open(t, state), cookie.Name, cookie.Value).CSRF // the key is kept
	require.NotEmpty(t, csrf)
	require.NotContains(t, cookie.Value, csrf)
	other, err := b.NewSession(&http.Request{})
	require.NoError(t, err)
	require.NotEqual(t, csrf, session(b, other.Name, other.Value).CSRF)

	claims := cookie.Value[:strings.LastIndexByte(cookie.Value, '.')]
	for _, forged := range []string{"", ".", claims, claims + ".", claims + "." + csrf,
		strings.Replace(cookie.Value, ".", ".9", 1), cookie.Value + "0"} {
		require.Empty(t, session(b, cookie.Name, forged), forged)
	}
	require.Empty(t, session(b, "passbook_console_8401", cookie.Value), "of another port")
	elsewhere, err := Open(state, "8401", false)
	require.NoError(t, err)
	require.Empty(t, session(elsewhere, elsewhere.Cookie, cookie.Value), "the console of another port has the same key")
	b.Now = func() time.Time { return time.Now().Add(SessionLife) }
	require.Empty(t, session(b, cookie.Name, cookie.Value), "expired")
}

// TestSessionsAreRevokedOneByOne lists sessions without their cookies, and ends the named one only.
func TestSessionsAreRevokedOneByOne(t *testing.T) {
	state := t.TempDir()
	b, now := open(t, state), time.Now()
	requests := make([]*http.Request, 2)
	for i, agent := range []string{"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1"} {
		r := &http.Request{Header: http.Header{"User-Agent": {agent}}, RemoteAddr: "127.0.0.1:5"}
		cookie, err := b.NewSession(r)
		require.NoError(t, err)
		r.AddCookie(cookie)
		requests[i] = r
	}
	id := func(r *http.Request) string {
		s, ok, err := b.Session(r)
		require.NoError(t, err)
		require.True(t, ok)
		return s.ID
	}
	first, second := id(requests[0]), id(requests[1])
	all, err := List(state, now)
	require.NoError(t, err)
	require.Len(t, all, 2)
	browsers := map[string]string{all[0].ID: all[0].Browser, all[1].ID: all[1].Browser}
	require.Equal(t, map[string]string{first: "Firefox on Linux", second: "Safari on iPhone"}, browsers)
	file, err := os.ReadFile(filepath.Join(state, "console", "sessions", first))
	require.NoError(t, err)
	cookie, err := requests[0].Cookie(b.Cookie)
	require.NoError(t, err)
	require.NotContains(t, string(file), cookie.Value[:8])

	for _, wrong := range []string{"", "x", "../session.key", first + "0"} {
		_, err = Revoke(state, wrong, now)
		require.ErrorContains(t, err, "there is no such session", wrong)
	}
	revoked, err := Revoke(state, first[:6], now)
	require.NoError(t, err)
	require.Equal(t, first, revoked.ID)
	_, ok, err := b.Session(requests[0])
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, second, id(requests[1]))

	require.NoError(t, os.WriteFile(filepath.Join(state, "console", "sessions", second), []byte("{"), 0o600))
	all, err = List(state, now)
	require.NoError(t, err)
	require.Equal(t, second, all[0].ID, "a damaged file can be revoked")
	require.NoError(t, b.End(requests[1]))
	all, err = List(state, now)
	require.NoError(t, err)
	require.Empty(t, all)
	_, err = b.NewSession(&http.Request{})
	require.NoError(t, err)
	all, err = List(state, now.Add(SessionLife+time.Minute))
	require.NoError(t, err)
	require.Empty(t, all, "it has expired")
}

package login

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Session is a login of a browser.
type Session struct {
	ID         string // discloses nothing about the cookie
	Browser    string
	Address    string // from which it logged in
	CreatedAt  string
	LastUsedAt string
	ExpiresAt  string
}

// SessionError reports a session that does not exist.
type SessionError struct{ ID string }

func (e *SessionError) Error() string {
	return fmt.Sprintf("log out session %q: there is no such session", e.ID)
}

const idLength = 12 // hexadecimal digits of the digest of a cookie

// session is a login, with the token of its forms.
type session struct {
	Session
	csrf        string
	used, until time.Time
}

// NewSession returns the cookie of a new session of a browser.
func (b *Sessions) NewSession(r *http.Request) *http.Cookie {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	secret, now := rand.Text(), b.Now()
	key := digest(secret)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire(now)
	b.open[key] = &session{Session{ID: key[:idLength], Browser: browserOf(r.UserAgent()), Address: host,
		CreatedAt: stamp(now), ExpiresAt: stamp(now.Add(SessionLife))}, rand.Text(), now, now.Add(SessionLife)}
	return b.cookie(secret, int(SessionLife.Seconds()))
}

func (b *Sessions) expire(now time.Time) {
	for key, s := range b.open {
		if !now.Before(s.until) {
			delete(b.open, key)
		}
	}
}

// Current is the session of a request.
type Current struct {
	ID   string
	CSRF string // that the forms of the session carry
}

// Session returns the session of a request; false: it has none.
func (b *Sessions) Session(r *http.Request) (Current, bool) {
	cookie, err := r.Cookie(b.Cookie)
	if err != nil {
		return Current{}, false
	}
	now := b.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire(now)
	s := b.open[digest(cookie.Value)]
	if s == nil {
		return Current{}, false
	}
	s.used = now
	return Current{s.ID, s.csrf}, true
}

// List returns the sessions, the one that was used last first.
func (b *Sessions) List() []Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire(b.Now())
	all := []Session{}
	for _, s := range b.open {
		s.LastUsedAt = stamp(s.used)
		all = append(all, s.Session)
	}
	slices.SortFunc(all, func(x, y Session) int {
		return cmp.Or(cmp.Compare(y.LastUsedAt, x.LastUsedAt), cmp.Compare(x.ID, y.ID))
	})
	return all
}

// Revoke ends a session, and returns it.
func (b *Sessions) Revoke(id string) (Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, s := range b.open {
		if s.ID == id {
			delete(b.open, key)
			return s.Session, nil
		}
	}
	return Session{}, &SessionError{id}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// browserOf names a browser and its system in a few words.
func browserOf(agent string) string {
	named := func(names ...string) string {
		for _, name := range names {
			word, shown, _ := strings.Cut(name, "=")
			if strings.Contains(agent, word) {
				return cmp.Or(shown, strings.TrimSuffix(word, "/"))
			}
		}
		return ""
	}
	browser := named("Firefox/", "Edg/=Edge", "OPR/=Opera", "HeadlessChrome/=Chrome", "Chrome/", "Safari/")
	system := named("Android", "iPhone", "iPad", "Windows", "Mac OS X=macOS", "CrOS=ChromeOS", "Linux")
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser+system != "":
		return browser + system
	}
	return "another program"
}

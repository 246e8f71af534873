package login

import (
	"crypto/rand"
	"net/http"
	"time"
)

// Session is a login of a browser.
type Session struct {
	ID   string // discloses nothing about the cookie
	CSRF string // the token that the forms of the session carry

	until time.Time
}

const idLength = 12 // hexadecimal digits of the digest of a cookie

// NewSession returns the cookie of a new session of a browser.
func (b *Sessions) NewSession() *http.Cookie {
	secret, now := rand.Text(), b.Now()
	key := digest(secret)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire(now)
	b.open[key] = Session{key[:idLength], rand.Text(), now.Add(SessionLife)}
	return b.cookie(secret, int(SessionLife.Seconds()))
}

func (b *Sessions) expire(now time.Time) {
	for key, s := range b.open {
		if !now.Before(s.until) {
			delete(b.open, key)
		}
	}
}

// Session returns the session of a request; false: it has none.
func (b *Sessions) Session(r *http.Request) (Session, bool) {
	cookie, err := r.Cookie(b.Cookie)
	if err != nil {
		return Session{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire(b.Now())
	s, ok := b.open[digest(cookie.Value)]
	return s, ok
}

// End ends a session; false: there is none.
func (b *Sessions) End(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, s := range b.open {
		if s.ID == id {
			delete(b.open, key)
			return true
		}
	}
	return false
}

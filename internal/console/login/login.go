// Package login lets browsers use the console: one-time links, and the sessions that they open.
//
// A link is a file of the state directory that only the owner writes: the SHA-256 of its secret, with the time of
// expiry. The first request with the secret removes the file, so a link works once, whichever console gets it. A
// session is in the memory of its console, and ends with it: a cookie that a program at the same address has taken
// meanwhile is worth nothing.
package login

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/passbook-run/passbook/internal/host"
)

const (
	// LinkLife is the time for which a link works.
	LinkLife = 15 * time.Minute
	// SessionLife is the maximum time for which a browser stays logged in.
	SessionLife = 30 * 24 * time.Hour
)

// Sessions are the links of a state directory, and the sessions of a console.
type Sessions struct {
	Links  string // folder
	Cookie string // its name; cookies are shared by all ports of a host
	Secure bool   // the browser sends the cookie only with TLS
	Now    func() time.Time

	mu   sync.Mutex
	open map[string]Session // by the digest of the cookie
}

// Open returns the links of a state directory, without a session.
func Open(stateDir, port string, secure bool) *Sessions {
	b := &Sessions{Links: filepath.Join(stateDir, "console", "links"), Cookie: "passbook_console_" + port,
		Secure: secure, Now: time.Now, open: map[string]Session{}}
	if secure { // another host of the domain cannot set it
		b.Cookie = "__Host-" + b.Cookie
	}
	return b
}

// NewLink makes a link of a state directory: the path and query to open at a console.
func NewLink(stateDir string, now time.Time) (string, error) {
	secret, err := host.NewLink(filepath.Join(stateDir, "console", "links"), now, LinkLife)
	if err != nil {
		return "", fmt.Errorf("make a login link: %w", err)
	}
	return "/login?key=" + secret, nil
}

// Use removes the file of a link. Only one caller succeeds.
func (b *Sessions) Use(secret string) (bool, error) {
	file := filepath.Join(b.Links, digest(secret))
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.Remove(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("use a login link: %w", err)
	}
	until, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	left := until.Sub(b.Now())
	return err == nil && left > 0 && left <= LinkLife+time.Minute, nil // more is left if the clock was set back
}

// Ended returns the cookie that ends a session in its browser.
func (b *Sessions) Ended() *http.Cookie { return b.cookie("", -1) }

func (b *Sessions) cookie(value string, age int) *http.Cookie {
	return &http.Cookie{Name: b.Cookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: b.Secure,
		SameSite: http.SameSiteStrictMode}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Package login lets browsers use the console: one-time links, and the sessions that they open.
//
// A link is a file of the state directory that only the owner writes: the SHA-256 of its secret, with the time of
// expiry. The first request with the secret removes the file, so a link works once, whichever console gets it. A
// session is a signed cookie with a file, and ends when the file is removed. The key is kept, so a browser stays logged
// in when the console restarts.
package login

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/keyfile"
)

const (
	// LinkLife is the time for which a link works.
	LinkLife = 15 * time.Minute
	// SessionLife is the time for which a browser stays logged in.
	SessionLife = 30 * 24 * time.Hour
)

// Sessions are the links and sessions of a state directory.
type Sessions struct {
	Links  string // folder
	Cookie string // its name; cookies are shared by all ports of a host
	Secure bool   // the browser sends the cookie only with TLS
	Now    func() time.Time
	key    []byte
	folder string // of the files of sessions
}

// Open returns the book of a state directory. The first call makes the key.
func Open(stateDir, port string, secure bool) (*Sessions, error) {
	dir := filepath.Join(stateDir, "console")
	key, err := keyfile.File{Path: filepath.Join(dir, "session.key"),
		Replace: "remove it to log every browser out, and start the console again"}.Load()
	if err != nil {
		return nil, fmt.Errorf("read the key of sessions: %w", err)
	}
	b := &Sessions{Links: filepath.Join(dir, "links"), Cookie: "passbook_console_" + port, Secure: secure, Now: time.Now,
		key: key, folder: sessionFolder(stateDir)}
	if secure { // another host of the domain cannot set it
		b.Cookie = "__Host-" + b.Cookie
	}
	return b, nil
}

// NewLink makes a link of a state directory: the path and query to open at a console.
func NewLink(stateDir string, now time.Time) (string, error) {
	path, err := newLink(stateDir, now)
	if err != nil {
		return "", fmt.Errorf("make a login link: %w", err)
	}
	return path, nil
}

func newLink(stateDir string, now time.Time) (string, error) {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return "", err
	}
	text, folder := base64.RawURLEncoding.EncodeToString(secret), filepath.Join(stateDir, "console", "links")
	if err := (durable.Disk{}).Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	if err := expire(folder, now); err != nil {
		return "", err
	}
	until := now.Add(LinkLife).UTC().Format(time.RFC3339)
	err := durable.Disk{}.WriteFile(filepath.Join(folder, digest(text)), []byte(until+"\n"), 0o600)
	return "/login?key=" + text, err
}

// expire removes the links that were not used in time.
func expire(folder string, now time.Time) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		file := filepath.Join(folder, e.Name())
		text, err := os.ReadFile(file)
		if until, bad := time.Parse(time.RFC3339, strings.TrimSpace(string(text))); err != nil || bad != nil ||
			now.Before(until) {
			continue
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
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

// NewSession returns the cookie of a new session of a browser: a random id, the time of expiry, and their signature.
func (b *Sessions) NewSession(r *http.Request) (*http.Cookie, error) {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return nil, err
	}
	claims := hex.EncodeToString(id) + "." + strconv.FormatInt(b.Now().Add(SessionLife).Unix(), 10)
	if err := b.record(claims, r); err != nil {
		return nil, fmt.Errorf("record a login: %w", err)
	}
	return b.cookie(claims+"."+b.sign("session", claims), int(SessionLife.Seconds())), nil
}

// Ended returns the cookie that ends a session in its browser.
func (b *Sessions) Ended() *http.Cookie { return b.cookie("", -1) }

func (b *Sessions) cookie(value string, age int) *http.Cookie {
	return &http.Cookie{Name: b.Cookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: b.Secure,
		SameSite: http.SameSiteStrictMode}
}

// Current is the session of a request.
type Current struct {
	ID   string
	CSRF string // that the forms of the session carry
}

// Session returns the session of a request; false: it has none.
func (b *Sessions) Session(r *http.Request) (s Current, ok bool, err error) {
	cookie, missing := r.Cookie(b.Cookie)
	if missing != nil {
		return s, false, nil
	}
	at := strings.LastIndexByte(cookie.Value, '.')
	if at < 0 || !equal(b.sign("session", cookie.Value[:at]), cookie.Value[at+1:]) {
		return s, false, nil
	}
	_, expiry, _ := strings.Cut(cookie.Value[:at], ".")
	until, bad := strconv.ParseInt(expiry, 10, 64)
	if bad != nil || b.Now().Unix() >= until {
		return s, false, nil
	}
	s = Current{idOf(cookie.Value[:at]), b.sign("csrf", cookie.Value[:at])}
	if ok, err = b.valid(s.ID); err != nil {
		return s, false, fmt.Errorf("read a session: %w", err)
	}
	return s, ok, nil
}

func (b *Sessions) sign(what, claims string) string {
	m := hmac.New(sha256.New, b.key)
	m.Write([]byte(what + "\n" + b.Cookie + "\n" + claims))
	return hex.EncodeToString(m.Sum(nil))
}

// equal compares two texts in a time that does not depend on where they differ.
func equal(x, y string) bool { return subtle.ConstantTimeCompare([]byte(x), []byte(y)) == 1 }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

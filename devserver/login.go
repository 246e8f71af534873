package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	loginPath   = "/login"
	sessionLife = 365 * 24 * time.Hour
)

// login lets a browser in that opened a one-time link, and recognizes it by a cookie. Links are files of a folder that
// only the owner writes: links/SHA-256 of the token, with the time of expiry. The first request with the token removes
// its file. Sessions are in memory and end with the server.
type login struct {
	dir    string
	cookie string // its name; cookies are shared by all ports of a host
	now    func() time.Time

	mu    sync.Mutex
	until map[[sha256.Size]byte]time.Time // by the digest of the cookie
}

func newLogin(dir, address string) (*login, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("set up the login: %w", err)
	}
	return &login{dir: dir, cookie: "passbook_ui_" + port, now: time.Now, until: map[[sha256.Size]byte]time.Time{}}, nil
}

// require refuses requests without a session.
func (l *login) require(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		path := c.Request().URL.Path
		if path == "/healthz" || path == loginPath || l.knows(c.Request()) {
			return next(c)
		}
		if strings.HasPrefix(path, "/api/") || c.Request().Method != http.MethodGet {
			return echo.NewHTTPError(http.StatusUnauthorized, "log in first: starter server ui prints a link")
		}
		return page(c, http.StatusUnauthorized, "Log in", "", "Run <code>starter server ui</code> in a terminal, and open "+
			"the link that it prints.")
	}
}

// handle opens a session for a one-time link.
func (l *login) handle(c echo.Context) error {
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	r := c.Request()
	if strings.Contains(r.Header.Get("Sec-Purpose")+r.Header.Get("Purpose"), "prefetch") {
		return echo.NewHTTPError(http.StatusServiceUnavailable, "a link is used when it is opened")
	}
	next := localPath(c.QueryParam("next"))
	ok, err := l.use(c.QueryParam("token"))
	if err != nil {
		return err
	}
	if !ok && !l.knows(r) {
		return page(c, http.StatusForbidden, "Log in", "", "This link was used or has expired. Run "+
			"<code>starter server ui</code> for a new one.")
	}
	if ok {
		c.SetCookie(&http.Cookie{Name: l.cookie, Value: l.session(), Path: "/", MaxAge: int(sessionLife.Seconds()),
			HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	// A redirect would still count as a request of the page with the link, and get no strict cookie.
	return page(c, http.StatusOK, "Logged in", next, "")
}

// use removes the file of a token. Only one caller succeeds.
func (l *login) use(token string) (bool, error) {
	if token == "" {
		return false, nil
	}
	sum := sha256.Sum256([]byte(token))
	file := filepath.Join(l.dir, "links", hex.EncodeToString(sum[:]))
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.Remove(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("use a link: %w", err)
	}
	until, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	return err == nil && l.now().Before(until), nil
}

// session begins a session, and returns the value of its cookie.
func (l *login) session() string {
	value := rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until[sha256.Sum256([]byte(value))] = l.now().Add(sessionLife)
	return value
}

// knows reports whether a request has the cookie of a session.
func (l *login) knows(r *http.Request) bool {
	cookie, err := r.Cookie(l.cookie)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now().Before(l.until[sha256.Sum256([]byte(cookie.Value))])
}

// localPath returns a path of this server; a link must not lead elsewhere.
func localPath(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

// page is a small page; next is where the browser goes from there.
func page(c echo.Context, code int, title, next, body string) error {
	refresh := ""
	if next != "" {
		next = html.EscapeString(next)
		refresh = `<meta http-equiv="refresh" content="0;url=` + next + `">`
		body = `<a href="` + next + `">Continue</a>`
	}
	c.Response().Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	return c.HTML(code, `<!doctype html><meta charset="utf-8">`+refresh+`<title>`+title+`</title><h1>`+title+`</h1><p>`+
		body+"</p>\n")
}

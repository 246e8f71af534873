package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	loginPath   = "/login"
	sessionLife = 365 * 24 * time.Hour
	secretSize  = 32
)

// login lets a browser in that opened a one-time link, and recognizes it by a signed cookie. Links are files of a
// folder that only the owner writes: links/SHA-256 of the token, with the time of expiry. The first request with the
// token removes its file. The secret that signs cookies is kept, so a browser stays logged in when the server restarts.
type login struct {
	dir    string
	cookie string // its name; cookies are shared by all ports of a host
	secret []byte
	now    func() time.Time
}

func newLogin(dir, address string) (*login, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("set up the login: %w", err)
	}
	l := &login{dir: dir, cookie: "passbook_ui_" + port, now: time.Now}
	if l.secret, err = secretIn(filepath.Join(dir, "secret")); err != nil {
		return nil, fmt.Errorf("set up the login: %w", err)
	}
	return l, nil
}

// secretIn returns the secret of a file that only the owner can read, or makes one.
func secretIn(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err == nil && info.Mode().Perm()&0o077 == 0 {
		if secret, err := os.ReadFile(file); err != nil || len(secret) == secretSize {
			return secret, err
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	secret := make([]byte, secretSize)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file+".new", secret, 0o600); err != nil {
		return nil, err
	}
	return secret, os.Rename(file+".new", file)
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
		session, err := l.session()
		if err != nil {
			return err
		}
		c.SetCookie(&http.Cookie{Name: l.cookie, Value: session, Path: "/", MaxAge: int(sessionLife.Seconds()),
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

// session returns the value of a cookie: a random id, the time of expiry, and their signature.
func (l *login) session() (string, error) {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return "", err
	}
	claims := hex.EncodeToString(id) + "." + strconv.FormatInt(l.now().Add(sessionLife).Unix(), 10)
	return claims + "." + l.sign(claims), nil
}

func (l *login) sign(claims string) string {
	m := hmac.New(sha256.New, l.secret)
	m.Write([]byte(l.cookie + "." + claims))
	return hex.EncodeToString(m.Sum(nil))
}

// knows reports whether a request has the cookie of a session.
func (l *login) knows(r *http.Request) bool {
	cookie, err := r.Cookie(l.cookie)
	if err != nil {
		return false
	}
	at := strings.LastIndexByte(cookie.Value, '.')
	if at < 0 || subtle.ConstantTimeCompare([]byte(l.sign(cookie.Value[:at])), []byte(cookie.Value[at+1:])) != 1 {
		return false
	}
	_, expiry, _ := strings.Cut(cookie.Value[:at], ".")
	until, err := strconv.ParseInt(expiry, 10, 64)
	return err == nil && l.now().Unix() < until
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

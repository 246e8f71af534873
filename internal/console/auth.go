package console

import (
	"context"
	"crypto/subtle"
	"html/template"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/console/login"
)

// authenticated puts the identity of a request into its context, or refuses the request. Who sends a token needs no
// CSRF token: no browser adds it automatically.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, session, ok, err := s.who(r)
		switch {
		case err != nil: // its text names a path, which is not for clients without an identity
			s.errors.Error("check who sends a request", "error", err)
			refuseTo(w, r, newProblem(api.CodeUnavailable, "check who sends the request: the console cannot read its tokens "+
				"or logins; the terminal of the console has the cause"))
			return
		case !ok && r.Header.Get("Authorization") != "" && !s.tries.allow(r.RemoteAddr):
			w.Header().Set("Retry-After", "60")
			refuse(w, newProblem(codeTooMany, "there were too many wrong tokens from your address; try again in a minute"))
			return
		case !ok:
			s.askLogin(w, r)
			return
		}
		r, bad := withBody(w, r, s.bodyTime)
		if bad != nil {
			refuse(w, *bad)
			return
		}
		if session.CSRF != "" && r.Method != http.MethodGet && r.Method != http.MethodHead && !carries(r, session.CSRF) {
			s.refuseForm(w, r)
			return
		}
		ctx, stop := s.unlessRevoked(r)
		defer stop()
		ctx = access.WithSession(access.WithCSRF(access.With(ctx, id), session.CSRF), session.ID)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// unlessRevoked returns the context of a request. If it only reads, the context ends when the token or session is
// revoked: a stream or a wait may last for hours.
func (s *Server) unlessRevoked(r *http.Request) (context.Context, func()) {
	if r.Method != http.MethodGet {
		return r.Context(), func() {}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	var check *time.Timer
	started := make(chan struct{})
	check = time.AfterFunc(recheck, func() {
		<-started
		if _, _, ok, err := s.who(r); err == nil && !ok {
			cancel(access.ErrRevoked)
			return
		}
		check.Reset(recheck)
	})
	close(started)
	return ctx, func() {
		check.Stop()
		cancel(nil)
	}
}

// recheck is how often the identity of a request that lasts is checked.
const recheck = time.Second

// who identifies a request by its token, or else by the session of its browser.
func (s *Server) who(r *http.Request) (id access.Identity, session login.Session, ok bool, err error) {
	if sent := r.Header.Values("Authorization"); len(sent) > 0 {
		scheme, text, _ := strings.Cut(sent[0], " ")
		if len(sent) > 1 || !strings.EqualFold(scheme, "Bearer") {
			return id, session, false, nil
		}
		t, ok, err := s.tokens.Find(strings.TrimSpace(text))
		return access.Identity{Name: t.Name, Can: t.Can}, session, ok, err
	}
	session, ok = s.session(r)
	return access.Identity{Name: s.user, Can: api.CanOperate}, session, ok, nil
}

// session returns the session of a browser. Every port of this machine gets the cookies of 127.0.0.1 and localhost, so
// only requests under another name have one.
func (s *Server) session(r *http.Request) (login.Session, bool) {
	if everywhere(r.Host) {
		return login.Session{}, false
	}
	return s.logins.Session(r)
}

// carries reports whether a request has the CSRF token of its session, in a header or in the form.
func carries(r *http.Request, csrf string) bool {
	sent := r.Header.Get("X-CSRF-Token")
	if sent == "" && mediaType(r) == "application/x-www-form-urlencoded" {
		if err := r.ParseForm(); err != nil {
			return false
		}
		sent = r.PostForm.Get("csrf")
	}
	return subtle.ConstantTimeCompare([]byte(sent), []byte(csrf)) == 1
}

// refuseForm answers a request whose CSRF token is not that of its session, as of a page that was opened before the
// last login.
func (s *Server) refuseForm(w http.ResponseWriter, r *http.Request) {
	if isForm(r) {
		s.keepForm(w, r, http.StatusForbidden, small{Title: "This page is from an earlier login",
			Text: "Nothing was sent. Open the page again, and send it from there."})
		return
	}
	refuse(w, newProblem(codeForbidden, "the request lacks the token of your session: reload the page and send it "+
		"again; programs send a token"))
}

// askLogin answers a request without an identity.
func (s *Server) askLogin(w http.ResponseWriter, r *http.Request) {
	const how = "Run <code>starter console link</code> in a terminal on this machine, and open the link that it prints."
	switch {
	case isForm(r):
		s.keepForm(w, r, http.StatusUnauthorized, small{Title: "You are logged out", Text: "Nothing was sent. " + how +
			" Then open the page again."})
		return
	case r.Method == http.MethodGet && opens(r) && r.Header.Get("Sec-Fetch-Site") == "cross-site":
		// the browser sends a strict cookie only when a page of this server leads there
		page(w, http.StatusUnauthorized, small{Title: "Opening the console", Next: r.URL.RequestURI()})
		return
	case r.Method == http.MethodGet && opens(r):
		page(w, http.StatusUnauthorized, small{Title: "Log in", Text: how})
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="passbook"`)
	refuse(w, unauthenticated())
}

func unauthenticated() problem {
	return newProblem(codeUnauthenticated, "send a token as \"Authorization: Bearer TOKEN\"; an operator makes one at a "+
		"terminal: starter token create NAME --can read")
}

// login opens a session for a one-time link. A program that only looks ahead does not use the link up.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	ahead := strings.Contains(r.Header.Get("Sec-Purpose")+r.Header.Get("Purpose"), "prefetch")
	if r.Method != http.MethodGet || ahead {
		w.Header().Set("Allow", "GET")
		refuse(w, newProblem(codeMethod, "a login link is used when a browser opens it"))
		return
	}
	if everywhere(r.Host) {
		page(w, http.StatusForbidden, small{Title: "Log in", Text: template.HTML("Browsers send what they get here to " +
			"every port of this machine. Open the link that <code>starter console link</code> prints; programs use this " +
			"address with a token.")})
		return
	}
	_, known := s.session(r)
	ok, err := s.logins.Use(r.URL.Query().Get("key"))
	switch {
	case err != nil:
		refuse(w, s.problemOf(err))
		return
	case !ok && !known && !s.tries.allow(r.RemoteAddr):
		w.Header().Set("Retry-After", "60")
		page(w, http.StatusTooManyRequests, small{Title: "Log in", Text: "There were too many wrong links from your " +
			"address. Try again in a minute."})
		return
	case !ok && !known:
		page(w, http.StatusForbidden, small{Title: "Log in", Text: "This link was used or has expired. Run <code>starter " +
			"console link</code> for a new one."})
		return
	case ok:
		http.SetCookie(w, s.logins.NewSession())
	}
	// A redirect would still count as a request of the page with the link, and get no strict cookie.
	page(w, http.StatusOK, small{Title: "Logged in", Next: "/"})
}

// logout ends the session of a browser.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if !s.logins.End(access.Session(r.Context())) {
		refuseTo(w, r, newProblem(api.CodeNotFound, "log out: the request has no session"))
		return
	}
	http.SetCookie(w, s.logins.Ended())
	page(w, http.StatusOK, small{Title: "Logged out", Text: "To log in again, run <code>starter console link</code>."})
}

// tries bounds the failed logins of an address. A valid token or link is accepted at any rate: it cannot be guessed.
type tries struct {
	mu     sync.Mutex
	failed map[string]failures
	now    func() time.Time
}

type failures struct {
	since time.Time
	n     int
}

const (
	maxFailures  = 20 // of an address in a minute
	maxAddresses = 10_000
)

// allow counts a failed login, and reports whether its address gets the reason.
func (t *tries) allow(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if len(t.failed) >= maxAddresses {
		t.failed = map[string]failures{}
	}
	f := t.failed[host]
	if now.Sub(f.since) >= time.Minute {
		f = failures{since: now}
	}
	f.n++
	t.failed[host] = f
	return f.n <= maxFailures
}

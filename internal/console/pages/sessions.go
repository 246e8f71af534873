package pages

import (
	"net/http"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/console/login"
)

// loggedIn is the body of the page of the browsers that are logged in.
type loggedIn struct {
	Sessions []login.Session
	Own      string // the id of the session of this browser
}

// browser reports whether a request is that of a browser that is logged in. Programs with a token see no logins.
func browser(r *http.Request) bool { return access.Session(r.Context()) != "" }

func (s *site) sessions(r *http.Request) (view, error) {
	if !browser(r) {
		return view{}, &missingError{what: "page " + r.URL.Path}
	}
	return view{name: "sessions", title: "Browsers", body: loggedIn{s.logins.List(), access.Session(r.Context())}}, nil
}

// logOut ends the session of another browser.
func (s *site) logOut(w http.ResponseWriter, r *http.Request) {
	if !browser(r) {
		s.fail(w, r, &missingError{what: "page " + r.URL.Path})
		return
	}
	ended, err := s.logins.Revoke(r.PathValue("session"))
	if err != nil {
		s.fail(w, r, &api.InputError{Err: err})
		return
	}
	s.lead(w, r, "/sessions", ended.Browser+" is logged out.")
}

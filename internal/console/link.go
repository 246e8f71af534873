package console

import (
	"cmp"
	"errors"
	"html"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/links"
	"github.com/passbook-run/passbook/internal/shell"
)

// linked serves the links in notices: the page of one question, its pictures, and its form. A request that only reads
// answers nothing, so a program that looks ahead decides nothing.
func (s *Server) linked(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, links.Path), "/")
		l, err := s.links.Read(text)
		if err != nil {
			s.refuseLink(w, r, l.Run, err)
			return
		}
		inside, ok := linkTarget(r.Method, rest)
		if !ok {
			refuseTo(w, r, newProblem(api.CodeNotFound, "the link only shows and answers its question"))
			return
		}
		r, bad := withBody(w, r, s.bodyTime)
		if bad != nil {
			refuse(w, *bad)
			return
		}
		to := r.Clone(access.With(r.Context(), access.Identity{Name: l.Receiver,
			Can: api.CanDecide, Base: links.Path + text, Question: l.Question}))
		to.URL.Path, to.URL.RawPath = "/runs/"+l.Run+"/"+inside, "/runs/"+url.PathEscape(l.Run)+"/"+inside
		pages.ServeHTTP(w, to)
	})
}

// linkTarget is the page of a run that a request with a link gets.
func linkTarget(method, rest string) (inside string, ok bool) {
	reads := method == http.MethodGet || method == http.MethodHead
	switch {
	case rest == "" && reads:
		return "question", true
	case strings.HasPrefix(rest, "pictures/") && reads, rest == "do/decide" && method == http.MethodPost:
		return rest, true
	}
	return "", false
}

// refuseLink answers a request with a link that is not valid. runID is empty if the link names no run.
func (s *Server) refuseLink(w http.ResponseWriter, r *http.Request, runID string, err error) {
	command := html.EscapeString(shell.Sprintf("starter decide %s", cmp.Or(runID, "RUN")))
	login := template.HTML(" Open the console, or run <code>" + command + "</code> in a terminal.")
	switch {
	case errors.Is(err, links.ErrExpired):
		page(w, http.StatusGone, small{Title: "This link has expired", Text: "The question may still be open." + login})
	case !s.tries.allow(r.RemoteAddr):
		w.Header().Set("Retry-After", "60")
		page(w, http.StatusTooManyRequests, small{Title: "Too many wrong links", Text: "Try again in a minute."})
	default:
		page(w, http.StatusForbidden, small{Title: "This link is not valid", Text: "It was cut or changed, or another " +
			"installation made it." + login})
	}
}

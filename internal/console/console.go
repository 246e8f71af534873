// Package console is the web server of this host: the HTTP API and the pages, for clients with a token and for browsers
// that opened a login link.
//
// The API has an address for each row of the table of operations, and some for files and events. A request is checked
// for its host, origin and access before anything else sees it. The package decides nothing about runs.
package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/console/login"
	"github.com/passbook-run/passbook/internal/console/tokens"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/links"
	"github.com/passbook-run/passbook/internal/operations"
)

// Options configure a server.
type Options struct {
	Host  api.Host
	User  string                      // who opens login links
	Pages func(api.Host) http.Handler // the pages; nil: none
	Err   io.Writer                   // for errors of the server itself
}

// Server answers requests.
type Server struct {
	host    api.Host
	user    string
	base    string   // URL as clients see it, without a path
	names   []string // hosts by which clients may address it, beside this machine
	proxied bool
	logins  *login.Sessions
	tokens  tokens.File
	links   *links.Maker
	tries   *tries
	streams atomic.Int64
	ending  chan struct{} // closed when the server ends

	bodyTime, pieceTime time.Duration
	errors              *slog.Logger
	handler             http.Handler
	pages               http.Handler
}

// newServer returns a server that clients reach at an address.
func newServer(o Options, at *url.URL, names []string, proxied bool) (*Server, error) {
	s := &Server{user: o.User, base: strings.TrimSuffix(at.String(), "/"), names: names, proxied: proxied,
		logins: login.Open(o.Host.Settings.StateDir, at.Port(), at.Scheme == "https"),
		tokens: tokens.In(o.Host.Settings.StateDir), tries: &tries{failed: map[string]failures{}, now: time.Now},
		ending: make(chan struct{}), errors: slog.New(slog.NewTextHandler(o.Err, nil)),
		bodyTime: bodyTime, pieceTime: pieceTime}
	var err error
	if s.links, err = links.Load(o.Host.Settings); err != nil {
		return nil, err
	}
	shared := asClient(o.Host)
	s.host = shared
	s.host.IDs = true // pages look a run up in the list, and name its directory
	var shown http.Handler = http.HandlerFunc(welcome)
	if o.Pages != nil {
		shown = o.Pages(shared)
	}
	s.pages = shown
	mux, err := s.routes(shown)
	if err != nil {
		return nil, err
	}
	s.handler = s.guard(mux)
	return s, nil
}

func (s *Server) https() bool { return strings.HasPrefix(s.base, "https://") }

// asClient is a host whose operations act for the client of a request.
func asClient(h api.Host) api.Host {
	connect := h.Connect
	if h.Program = "starter"; h.Rows == nil {
		h.Rows = &operations.Rows{}
	}
	h.Connect = func(ctx context.Context) (operations.Operator, func(), error) {
		o, release, err := connect(ctx)
		id, known := access.From(ctx)
		if err == nil && !known {
			release()
			err = errors.New("a request without an identity reached an operation")
		}
		if err != nil {
			return o, release, err
		}
		o.By, o.Request, o.Inherit = id.Name, access.Request(ctx), true // the client has no terminal on this host
		return o, release, nil
	}
	return h
}

// routes connects addresses and handlers.
func (s *Server) routes(pages http.Handler) (http.Handler, error) {
	inside := http.NewServeMux()
	document, err := s.describe(inside)
	if err != nil {
		return nil, err
	}
	inside.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, r *http.Request) {
		send(w, r, "application/json", document)
	})
	inside.HandleFunc("POST /logout", s.logout)
	inside.Handle("/", pages)
	inside.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) { s.missing(inside, w, r) })

	outside := http.NewServeMux()
	outside.Handle("/", s.authenticated(inside))
	outside.HandleFunc("/login", s.login)
	outside.Handle(links.Path, s.linked(pages))
	outside.Handle("GET /static/", pages) // the style sheet of the page of a link
	outside.HandleFunc("GET /healthz", host.Healthy)
	outside.Handle("GET /readyz", &host.Readiness{Checks: []host.Condition{
		{Name: "state_dir", Do: func(context.Context) error { return host.Writable(s.host.Settings.StateDir) }},
	}})
	return outside, nil
}

// welcome is the page of a console without pages.
func welcome(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		refuse(w, newProblem(api.CodeNotFound, "there is nothing at this address; /openapi.json lists the addresses"))
		return
	}
	page(w, http.StatusOK, small{Title: "Passbook",
		Text: `The API is described in <a href="/openapi.json">openapi.json</a>.`})
}

// missing answers a request for an address or a method that the API lacks.
func (s *Server) missing(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var allow []string
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		probe := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := mux.Handler(probe); strings.HasPrefix(pattern, method+" ") {
			allow = append(allow, method)
		}
	}
	if methods := strings.Join(allow, ", "); methods != "" {
		w.Header().Set("Allow", methods)
		refuse(w, newProblem(codeMethod, fmt.Sprintf("%s is not used at this address; use %s", r.Method, methods)))
		return
	}
	refuse(w, newProblem(api.CodeNotFound, "there is nothing at this address; /openapi.json lists the addresses"))
}

// fail answers with the error of an operation. A run that is not on this host may be on another one.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if access.Revoked(r.Context()) {
		s.askLogin(w, r)
		return
	}
	p := s.problemOf(err)
	id := r.PathValue("id")
	if p.Code == api.CodeNotFound && id != "" {
		if far, missing := s.host.Elsewhere(r.Context(), id, err); missing == nil && far.Host != "" {
			p = newProblem(codeNotHere, fmt.Sprintf("read run %s: not available here, because its directory is on %s; ask "+
				"the console there", far.RunID, far.Host))
			p.Host = far.Host
		}
	}
	refuse(w, p)
}

// elsewhere answers with the status of a run whose directory is on another host; false: it is not.
func (s *Server) elsewhere(w http.ResponseWriter, r *http.Request) bool {
	_, err := s.host.Find(r.PathValue("id"))
	if api.CodeOf(err) != api.CodeNotFound {
		return false
	}
	far, err := s.host.Elsewhere(r.Context(), r.PathValue("id"), err)
	if err != nil {
		return false
	}
	answer(w, r, far)
	return true
}

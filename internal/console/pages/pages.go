// Package pages has the HTML pages of the console: the inbox of open questions, the list of runs, and pages about a run
// and its passes. They work without JavaScript; a small script keeps them up to date. All data comes from the table of
// operations, the view model and the report. Text of agents is shown as text, never as markup.
//
// The caller checks who sends a request, where it comes from, and the token of its forms, before it gets here.
package pages

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/console/form"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/run"
)

//go:embed *.html
var sources embed.FS

//go:embed static
var assets embed.FS

// site answers the requests.
type site struct {
	h     api.Host
	pages *template.Template
	files map[string]file // static ones, by name
	notes notes
	lists listings

	streams streams
	now     func() time.Time
}

// New returns the handler of the pages. It serves "/", "/inbox", "/runs", "/start" and "/static".
func New(h api.Host) http.Handler { return newSite(h).routes() }

func newSite(h api.Host) *site {
	if h.Rows == nil {
		h.Rows = &operations.Rows{}
	}
	s := &site{h: h, now: time.Now}
	s.files = staticFiles()
	base, err := report.Fragments()
	if err != nil {
		panic(err) // the templates are part of the program
	}
	s.pages = template.Must(base.Funcs(s.functions()).ParseFS(sources, "*.html"))
	return s
}

func (s *site) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/inbox", http.StatusSeeOther)
	})
	mux.HandleFunc("GET /static/{name}", s.static)
	for pattern, page := range map[string]func(*http.Request) (screen, error){
		"GET /inbox":                    s.inbox,
		"GET /start":                    s.start,
		"GET /runs":                     s.runs,
		"GET /runs/{id}":                s.overview,
		"GET /runs/{id}/question":       s.asked,
		"GET /runs/{id}/changes":        s.changes,
		"GET /runs/{id}/cost":           s.cost,
		"GET /runs/{id}/checkpoints":    s.checkpoints,
		"GET /runs/{id}/pictures":       s.pictures,
		"GET /runs/{id}/history":        s.history,
		"GET /runs/{id}/log":            s.log,
		"GET /runs/{id}/passes/{n}":     s.pass,
		"GET /runs/{id}/do/{operation}": s.prepare,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v, err := page(r)
			if err != nil {
				s.fail(w, r, err)
				return
			}
			s.show(w, r, v)
		})
	}
	mux.HandleFunc("POST /start", s.begin)
	mux.HandleFunc("POST /runs/{id}/do/{operation}", s.execute)
	mux.HandleFunc("GET /runs/{id}/live", s.live)
	mux.HandleFunc("GET /runs/{id}/pictures/{name...}", s.picture)
	mux.HandleFunc("GET /runs/{id}/artifact", s.artifact)
	mux.HandleFunc("GET /runs/{id}/temporal", s.temporal)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &missingError{what: "page " + r.URL.Path})
	})
	return s.identified(mux)
}

// identified refuses requests without an identity that may read. The server in front asks browsers to log in.
func (s *site) identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := access.From(r.Context())
		if (!ok || !id.Can.Includes(api.CanRead)) && !strings.HasPrefix(r.URL.Path, "/static/") {
			http.Error(w, "log in first: starter console prints a link", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// screen is what a page shows: a template, and the title of the window.
type screen struct {
	name, title string
	status      int // of the response; 0: OK
	body        any
}

// frame is what every page has around its content.
type frame struct {
	Title    string
	Section  string // of the navigation
	Who      access.Identity
	CSRF     string
	Note     string // about the request before
	Waiting  int    // open questions
	Decides  bool   // who reads may answer them
	Operates bool   // who reads may control runs
	Body     any
}

// show writes a page.
func (s *site) show(w http.ResponseWriter, r *http.Request, v screen) {
	id, _ := access.From(r.Context())
	var waiting []operations.Row
	if id.Base == "" {
		var err error
		if waiting, err = s.waiting(); err != nil {
			waiting = nil // the page itself reports what cannot be read
		}
	}
	f := frame{Title: v.title, Section: section(r.URL), Who: id, CSRF: access.CSRF(r.Context()), Body: v.body,
		Note: s.notes.take(r.URL.Query().Get("note"), s.now()), Waiting: len(waiting),
		Decides: id.Can.Includes(api.CanDecide), Operates: id.Can.Includes(api.CanOperate)}
	text, err := s.part(v.name, f)
	if err != nil {
		http.Error(w, s.h.Secrets.Text("show the page: "+err.Error()+"; report this problem"), http.StatusInternalServerError)
		return
	}
	headers(w, "text/html; charset=utf-8")
	if v.status != 0 {
		w.WriteHeader(v.status)
	}
	if _, err := io.WriteString(w, text); err != nil {
		return // the browser has closed the connection
	}
}

func section(u *url.URL) string {
	if u.Path == "/inbox" {
		return "inbox"
	}
	return "runs"
}

// policy is the policy of every page: nothing but what this server has.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func headers(w http.ResponseWriter, kind string) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// missingError reports something that does not exist, or not here.
type missingError struct{ what string }

func (e *missingError) Error() string {
	return "show " + e.what + ": not found; open the list of runs"
}

// failure is the body of a page about a problem.
type failure struct {
	Status  int
	Problem api.Problem
	Back    string // where the user came from
	Texts   []form.Text
}

// statusOf is the status of a response about a problem.
func statusOf(c api.Code) int {
	switch c {
	case api.CodeInvalid:
		return http.StatusUnprocessableEntity
	case api.CodeNotFound:
		return http.StatusNotFound
	case api.CodeNotAllowed, api.CodeUndecided:
		return http.StatusConflict
	case api.CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// fail shows a problem.
func (s *site) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := failure{Problem: s.h.ProblemOf(err), Back: "/runs"}
	f.Status, f.Texts = statusOf(f.Problem.Code), form.Texts(r.PostForm)
	var missing *missingError
	var denied *accessError
	var conflict *run.ConflictError
	switch {
	case errors.As(err, &conflict):
		f.Problem.Message = fmt.Sprintf("%s run %s: it is %s, which does not allow that; see what it allows now",
			conflict.Operation, r.PathValue("id"), words(conflict.From))

	case errors.As(err, &missing):
		f.Status, f.Problem.Code = http.StatusNotFound, api.CodeNotFound
	case errors.As(err, &denied):
		f.Status, f.Problem.Code = http.StatusForbidden, api.CodeNotAllowed
	}
	if id := r.PathValue("id"); id != "" && f.Status != http.StatusNotFound {
		f.Back = pathFor(r.Context(), id)
	}
	s.show(w, r, screen{name: "failure", title: "A problem", status: f.Status, body: f})
}

// accessError refuses an operation to an identity.
type accessError struct {
	operation string
	needs     api.Access
}

func (e *accessError) Error() string {
	return fmt.Sprintf("%s: your access does not include it; log in with a token that can %s", e.operation, e.needs)
}

// pathFor is the path of the page of a run for who sends a request.
func pathFor(ctx context.Context, run string) string {
	id, _ := access.From(ctx)
	return cmp.Or(id.Base, runPath(run))
}

func runPath(id string) string { return "/runs/" + url.PathEscape(id) }

// notes keep the results of requests for the page that the browser is sent to.
type notes struct {
	mu   sync.Mutex
	kept map[string]note
}

type note struct {
	text string
	at   time.Time
}

const (
	noteLife = 10 * time.Minute
	maxNotes = 200
)

// keep returns the name of a text. A page address that names no kept text shows none, so a link cannot put words into a
// page.
func (n *notes) keep(text string, now time.Time) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, one := range n.kept {
		if now.Sub(one.at) > noteLife || len(n.kept) >= maxNotes {
			delete(n.kept, name)
		}
	}
	if n.kept == nil {
		n.kept = map[string]note{}
	}
	name := randomName()
	n.kept[name] = note{text, now}
	return name
}

// take returns a kept text; "" if there is none.
func (n *notes) take(name string, now time.Time) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if one, there := n.kept[name]; there && now.Sub(one.at) <= noteLife {
		return one.text
	}
	return ""
}

// detached returns a context for work that continues when the browser leaves.
func detached(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

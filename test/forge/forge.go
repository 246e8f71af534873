// Package forge is a forge on loopback for tests: what Passbook uses of the API of GitHub Enterprise, and git over HTTP.
// It has one repository, and fails on request: rate limits, server errors, and connections that are lost before or after
// a request took effect.
package forge

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Faults that a request can meet.
const (
	Limit     = "limit"      // 403, and no requests are left for a second
	Secondary = "secondary"  // 403 with Retry-After
	Broken    = "broken"     // 502
	Lost      = "lost"       // the connection is lost; nothing happened
	LostAfter = "lost after" // the request took effect, and the connection is lost
)

// Comment is a comment on an issue or a pull request.
type Comment struct {
	ID      int64
	Issue   int
	Author  string
	Body    string
	At      time.Time
	Edited  time.Time
	Path    string // of a comment on a line of a pull request
	Deleted bool
}

// Issue is an issue, or a pull request if it has a branch.
type Issue struct {
	Number              int
	Title, Body, Author string
	Closed, Merged      bool
	Labels              []string
	Events              []Event
	Branch, Base        string
	Draft               bool
	Reviewers           []string
}

// Event is a label that was set or removed.
type Event struct{ Kind, Label, Actor string }

// Check is a check run of a commit.
type Check struct {
	ID                 int64
	Commit, Name       string
	Status, Conclusion string
	Log                string
}

// Forge is the forge.
type Forge struct {
	URL   string // of the forge
	Token string // that it accepts
	Self  string // the account of the token
	Git   string // the bare repository

	mu        sync.Mutex
	server    *httptest.Server
	levels    map[string]string // permissions by account
	issues    []*Issue
	comments  []*Comment
	checks    []*Check
	next      int64
	fault     func(*http.Request) string
	requests  []string // that took effect: method and path
	strangers int      // requests without the token
}

// Owner and Name name the repository.
const (
	Owner = "acme"
	Name  = "widgets"
)

// New starts a forge with an empty repository in a folder. Its accounts are: the operator of the token and ann, who may
// write; mallory, who may read.
func New(folder string) (*Forge, error) {
	f := &Forge{Token: "ghp_T0kenOfTheTestsForge0123456789abcdef", Self: "operator", next: 1000,
		Git:    filepath.Join(folder, Owner, Name+".git"),
		levels: map[string]string{"operator": "admin", "ann": "write", "ben": "write", "mallory": "read"}}
	for _, args := range [][]string{
		{"init", "--quiet", "--bare", "--initial-branch=main", f.Git}, {"-C", f.Git, "config", "http.receivepack", "true"},
		{"-C", f.Git, "config", "receive.denyDeletes", "false"},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	f.server = httptest.NewServer(http.HandlerFunc(f.serve))
	f.URL = f.server.URL
	return f, nil
}

// Close stops the forge.
func (f *Forge) Close() { f.server.Close() }

// Remote is the address of the repository for git.
func (f *Forge) Remote() string { return f.URL + "/" + Owner + "/" + Name + ".git" }

// Fail sets which requests fail, and how; nil: none.
func (f *Forge) Fail(fault func(*http.Request) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// Allow sets the permission of an account.
func (f *Forge) Allow(login, level string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.levels[login] = level
}

// Open opens an issue and returns its number.
func (f *Forge) Open(author, title, body string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open(&Issue{Author: author, Title: title, Body: body})
}

func (f *Forge) open(i *Issue) int {
	i.Number = len(f.issues) + 1
	f.issues = append(f.issues, i)
	return i.Number
}

// Label sets a label of an issue.
func (f *Forge) Label(number int, label, actor string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.issues[number-1]
	i.Labels, i.Events = append(i.Labels, label), append(i.Events, Event{"labeled", label, actor})
}

// Shut closes an issue or a pull request.
func (f *Forge) Shut(number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.issues[number-1].Closed = true
}

// Comment adds a comment and returns its id.
func (f *Forge) Comment(number int, author, body string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.comment(number, author, body, "").ID
}

// CommentOnLine adds a comment on a line of a pull request.
func (f *Forge) CommentOnLine(number int, author, path, body string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.comment(number, author, body, path).ID
}

func (f *Forge) comment(number int, author, body, path string) *Comment {
	f.next++
	c := &Comment{ID: f.next, Issue: number, Author: author, Body: body, Path: path, At: time.Now().UTC(),
		Edited: time.Now().UTC()}
	f.comments = append(f.comments, c)
	return c
}

// Edit replaces the text of a comment; an empty one deletes it.
func (f *Forge) Edit(id int64, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.comments {
		if c.ID == id {
			c.Body, c.Edited, c.Deleted = body, time.Now().UTC(), body == ""
		}
	}
}

// Comments lists the comments on an issue.
func (f *Forge) Comments(number int) (all []Comment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.comments {
		if c.Issue == number && !c.Deleted {
			all = append(all, *c)
		}
	}
	return all
}

// Pulls lists the pull requests.
func (f *Forge) Pulls() (all []Issue) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.issues {
		if i.Branch != "" {
			all = append(all, *i)
		}
	}
	return all
}

// Check sets a check of a commit: queued, success or failure.
func (f *Forge) Check(commit, name, result, log string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.checks, func(c *Check) bool { return c.Commit == commit && c.Name == name })
	if i < 0 {
		f.next++
		i, f.checks = len(f.checks), append(f.checks, &Check{ID: f.next, Commit: commit, Name: name})
	}
	c := f.checks[i]
	c.Status, c.Conclusion, c.Log = "completed", result, log
	if result == "queued" {
		c.Status, c.Conclusion = "queued", ""
	}
}

// Merge merges a pull request, as a button on its page does.
func (f *Forge) Merge(number int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.issues[number-1]
	tree, err := f.git("merge-tree", "--write-tree", p.Base, p.Branch)
	if err != nil {
		return err
	}
	commit, err := f.git("-c", "user.name=forge", "-c", "user.email=forge@localhost", "commit-tree", tree, "-p", p.Base, "-p",
		p.Branch, "-m", p.Title)
	if err == nil {
		_, err = f.git("update-ref", "refs/heads/"+p.Base, commit)
	}
	p.Merged, p.Closed = err == nil, err == nil
	return err
}

// At returns the commit of a branch; empty: there is none.
func (f *Forge) At(branch string) string {
	commit, err := f.git("rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
	if err != nil {
		return ""
	}
	return commit
}

// Requests lists the requests with a method that took effect.
func (f *Forge) Requests(method string) (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if strings.HasPrefix(r, method+" ") {
			all = append(all, r)
		}
	}
	return all
}

// Strangers counts the requests without the token.
func (f *Forge) Strangers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.strangers
}

func (f *Forge) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = f.Git, append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

func (f *Forge) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	find := f.fault
	f.mu.Unlock()
	fault := ""
	if find != nil {
		fault = find(r)
	}
	switch fault {
	case Limit, Secondary:
		w.Header().Set("Content-Type", "application/json")
		if fault == Secondary {
			w.Header().Set("Retry-After", "1")
		} else {
			w.Header().Set("X-RateLimit-Limit", "5000")
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(time.Second).Unix(), 10))
		}
		text := "API rate limit exceeded"
		if fault == Secondary {
			text = "You have exceeded a secondary rate limit"
		}
		reply(w, r, http.StatusForbidden, map[string]any{"message": text,
			"documentation_url": "https://docs.github.com/rest/overview/rate-limits#secondary-rate-limits"})
		return
	case Broken:
		http.Error(w, "bad gateway", http.StatusBadGateway)
		return
	case Lost:
		panic(http.ErrAbortHandler)
	case LostAfter:
		f.handle(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	f.handle(w, r)
}

func (f *Forge) handle(w http.ResponseWriter, r *http.Request) {
	if path, api := strings.CutPrefix(r.URL.Path, "/api/v3"); api {
		if r.Header.Get("Authorization") != "Bearer "+f.Token {
			f.mu.Lock()
			f.strangers++
			f.mu.Unlock()
			reply(w, r, http.StatusUnauthorized, map[string]any{"message": "Bad credentials"})
			return
		}
		f.api(w, r, path)
		return
	}
	if id, log := strings.CutPrefix(r.URL.Path, "/logs/"); log {
		f.log(w, r, id)
		return
	}
	user, password, _ := r.BasicAuth()
	if user != "x-access-token" || password != f.Token {
		w.Header().Set("WWW-Authenticate", "Basic")
		http.Error(w, "log in", http.StatusUnauthorized)
		return
	}
	backend := cgi.Handler{Path: "/usr/bin/git", Args: []string{"http-backend"}, Env: []string{
		"GIT_PROJECT_ROOT=" + filepath.Dir(filepath.Dir(f.Git)), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=operator"}}
	backend.ServeHTTP(w, r)
}

func (f *Forge) log(w http.ResponseWriter, r *http.Request, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.checks {
		if strconv.FormatInt(c.ID, 10) == id && r.Header.Get("Authorization") == "" {
			http.ServeContent(w, r, "log.txt", time.Time{}, strings.NewReader(c.Log))
			return
		}
	}
	http.NotFound(w, r)
}

// reply writes JSON with its ETag, or that nothing has changed.
func reply(w http.ResponseWriter, r *http.Request, status int, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet && status == http.StatusOK {
		etag := fmt.Sprintf(`"%x"`, sha256.Sum256(raw))
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}

var repository = "/repos/" + Owner + "/" + Name

// route is a row of the API.
type route struct {
	method string
	path   *regexp.Regexp
	serve  func(*Forge, *http.Request, []string, map[string]any) (int, any)
}

func row(method, path string, serve func(*Forge, *http.Request, []string, map[string]any) (int, any)) route {
	return route{method, regexp.MustCompile("^" + path + "$"), serve}
}

var routes = []route{
	row("GET", "/user", func(f *Forge, _ *http.Request, _ []string, _ map[string]any) (int, any) {
		return 200, user(f.Self)
	}),
	row("GET", repository, func(*Forge, *http.Request, []string, map[string]any) (int, any) {
		return 200, map[string]any{"default_branch": "main", "full_name": Owner + "/" + Name}
	}),
	row("GET", repository+`/collaborators/([^/]+)/permission`, (*Forge).permission),
	row("GET", repository+`/issues`, (*Forge).list),
	row("GET", repository+`/issues/(\d+)`, (*Forge).issue),
	row("GET", repository+`/issues/(\d+)/events`, (*Forge).events),
	row("GET", repository+`/issues/(\d+)/comments`, (*Forge).listComments),
	row("POST", repository+`/issues/(\d+)/comments`, (*Forge).addComment),
	row("PATCH", repository+`/issues/comments/(\d+)`, (*Forge).editComment),
	row("GET", repository+`/pulls`, (*Forge).listPulls),
	row("POST", repository+`/pulls`, (*Forge).openPull),
	row("GET", repository+`/pulls/(\d+)`, (*Forge).pull),
	row("PATCH", repository+`/pulls/(\d+)`, (*Forge).editPull),
	row("POST", repository+`/pulls/(\d+)/requested_reviewers`, (*Forge).review),
	row("GET", repository+`/pulls/(\d+)/comments`, (*Forge).lineComments),
	row("GET", repository+`/pulls/(\d+)/reviews`, func(*Forge, *http.Request, []string, map[string]any) (int, any) {
		return 200, []any{}
	}),
	row("GET", repository+`/commits/([0-9a-f]+)/check-runs`, (*Forge).checkRuns),
	row("GET", repository+`/commits/([0-9a-f]+)/status`, func(*Forge, *http.Request, []string, map[string]any) (int, any) {
		return 200, map[string]any{"statuses": []any{}}
	}),
	row("GET", repository+`/actions/jobs/(\d+)/logs`, nil),
	row("GET", repository+`/git/ref/heads/(.+)`, (*Forge).ref),
	row("DELETE", repository+`/git/refs/heads/(.+)`, (*Forge).deleteRef),
}

func (f *Forge) api(w http.ResponseWriter, r *http.Request, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil && err != io.EOF {
		reply(w, r, http.StatusBadRequest, map[string]any{"message": err.Error()})
		return
	}
	for _, row := range routes {
		m := row.path.FindStringSubmatch(path)
		if m == nil || row.method != r.Method {
			continue
		}
		f.requests = append(f.requests, r.Method+" "+path)
		if row.serve == nil {
			http.Redirect(w, r, f.URL+"/logs/"+m[1], http.StatusFound)
			return
		}
		status, value := row.serve(f, r, m[1:], body)
		reply(w, r, status, value)
		return
	}
	reply(w, r, http.StatusNotFound, map[string]any{"message": "Not Found"})
}

func missing() (int, any) { return http.StatusNotFound, map[string]any{"message": "Not Found"} }

func user(login string) map[string]any { return map[string]any{"login": login} }

func (f *Forge) permission(_ *http.Request, m []string, _ map[string]any) (int, any) {
	level, known := f.levels[m[0]]
	if !known {
		level = "none"
	}
	return 200, map[string]any{"permission": level, "user": user(m[0])}
}

func (f *Forge) found(number string) *Issue {
	n, _ := strconv.Atoi(number)
	if n < 1 || n > len(f.issues) {
		return nil
	}
	return f.issues[n-1]
}

func (f *Forge) list(r *http.Request, _ []string, _ map[string]any) (int, any) {
	label, all := r.URL.Query().Get("labels"), []any{}
	for _, i := range f.issues {
		if !i.Closed && (label == "" || slices.Contains(i.Labels, label)) {
			all = append(all, f.asIssue(i))
		}
	}
	return 200, all
}

func (f *Forge) asIssue(i *Issue) map[string]any {
	state := "open"
	if i.Closed {
		state = "closed"
	}
	out := map[string]any{"number": i.Number, "title": i.Title, "body": i.Body, "state": state, "user": user(i.Author),
		"html_url": fmt.Sprintf("%s/%s/%s/issues/%d", f.URL, Owner, Name, i.Number)}
	if i.Branch != "" {
		out["pull_request"] = map[string]any{"url": "x"}
	}
	return out
}

func (f *Forge) issue(_ *http.Request, m []string, _ map[string]any) (int, any) {
	if i := f.found(m[0]); i != nil {
		return 200, f.asIssue(i)
	}
	return missing()
}

func (f *Forge) events(_ *http.Request, m []string, _ map[string]any) (int, any) {
	i, all := f.found(m[0]), []any{}
	if i == nil {
		return missing()
	}
	for _, e := range i.Events {
		all = append(all, map[string]any{"event": e.Kind, "label": map[string]any{"name": e.Label}, "actor": user(e.Actor)})
	}
	return 200, all
}

func (f *Forge) asComment(c *Comment) map[string]any {
	return map[string]any{"id": c.ID, "body": c.Body, "user": user(c.Author), "created_at": c.At.Format(time.RFC3339),
		"updated_at": c.Edited.Format(time.RFC3339), "path": c.Path, "line": 1,
		"html_url": fmt.Sprintf("%s/%s/%s/issues/%d#issuecomment-%d", f.URL, Owner, Name, c.Issue, c.ID)}
}

func (f *Forge) commentsOf(r *http.Request, number string, onLine bool) (int, any) {
	since, err := time.Parse(time.RFC3339, r.URL.Query().Get("since"))
	if err != nil { // there is none
		since = time.Time{}
	}
	all := []any{}
	for _, c := range f.comments {
		if strconv.Itoa(c.Issue) == number && !c.Deleted && (c.Path != "") == onLine && !c.Edited.Before(since) {
			all = append(all, f.asComment(c))
		}
	}
	return 200, all
}

func (f *Forge) listComments(r *http.Request, m []string, _ map[string]any) (int, any) {
	return f.commentsOf(r, m[0], false)
}

func (f *Forge) lineComments(r *http.Request, m []string, _ map[string]any) (int, any) {
	return f.commentsOf(r, m[0], true)
}

func (f *Forge) addComment(_ *http.Request, m []string, body map[string]any) (int, any) {
	i := f.found(m[0])
	if i == nil {
		return missing()
	}
	return http.StatusCreated, f.asComment(f.comment(i.Number, f.Self, fmt.Sprint(body["body"]), ""))
}

func (f *Forge) editComment(_ *http.Request, m []string, body map[string]any) (int, any) {
	for _, c := range f.comments {
		if strconv.FormatInt(c.ID, 10) == m[0] && !c.Deleted {
			c.Body, c.Edited = fmt.Sprint(body["body"]), time.Now().UTC()
			return 200, f.asComment(c)
		}
	}
	return missing()
}

func (f *Forge) asPull(i *Issue) map[string]any {
	out := f.asIssue(i)
	out["html_url"] = fmt.Sprintf("%s/%s/%s/pull/%d", f.URL, Owner, Name, i.Number)
	out["merged"], out["draft"] = i.Merged, i.Draft
	out["head"] = map[string]any{"ref": i.Branch, "sha": f.At(i.Branch), "repo": map[string]any{"full_name": Owner + "/" + Name}}
	out["base"] = map[string]any{"ref": i.Base, "sha": f.At(i.Base)}
	_, err := f.git("merge-tree", "--write-tree", i.Base, i.Branch)
	out["mergeable"] = err == nil
	return out
}

func (f *Forge) listPulls(r *http.Request, _ []string, _ map[string]any) (int, any) {
	head, all := r.URL.Query().Get("head"), []any{}
	for _, i := range f.issues {
		if i.Branch != "" && !i.Closed && (head == "" || head == Owner+":"+i.Branch) {
			all = append(all, f.asPull(i))
		}
	}
	return 200, all
}

func (f *Forge) openPull(_ *http.Request, _ []string, body map[string]any) (int, any) {
	branch := fmt.Sprint(body["head"])
	for _, i := range f.issues {
		if i.Branch == branch && !i.Closed || f.At(branch) == "" {
			return http.StatusUnprocessableEntity, map[string]any{"message": "A pull request already exists"}
		}
	}
	draft, _ := body["draft"].(bool)
	i := &Issue{Author: f.Self, Title: fmt.Sprint(body["title"]), Body: fmt.Sprint(body["body"]), Branch: branch,
		Base: fmt.Sprint(body["base"]), Draft: draft}
	f.open(i)
	return http.StatusCreated, f.asPull(i)
}

func (f *Forge) pull(_ *http.Request, m []string, _ map[string]any) (int, any) {
	if i := f.found(m[0]); i != nil && i.Branch != "" {
		return 200, f.asPull(i)
	}
	return missing()
}

func (f *Forge) editPull(_ *http.Request, m []string, body map[string]any) (int, any) {
	i := f.found(m[0])
	if i == nil {
		return missing()
	}
	i.Body = fmt.Sprint(body["body"])
	return 200, f.asPull(i)
}

func (f *Forge) review(_ *http.Request, m []string, body map[string]any) (int, any) {
	i := f.found(m[0])
	if i == nil {
		return missing()
	}
	list, _ := body["reviewers"].([]any)
	i.Reviewers = nil
	for _, name := range list {
		i.Reviewers = append(i.Reviewers, fmt.Sprint(name))
	}
	return http.StatusCreated, f.asPull(i)
}

func (f *Forge) checkRuns(_ *http.Request, m []string, _ map[string]any) (int, any) {
	all := []any{}
	for _, c := range f.checks {
		if c.Commit == m[0] {
			one := map[string]any{"id": c.ID, "name": c.Name, "status": c.Status, "app": map[string]any{"slug": "github-actions"}}
			if c.Conclusion != "" {
				one["conclusion"] = c.Conclusion
			}
			all = append(all, one)
		}
	}
	return 200, map[string]any{"total_count": len(all), "check_runs": all}
}

func (f *Forge) ref(_ *http.Request, m []string, _ map[string]any) (int, any) {
	at := f.At(m[0])
	if at == "" {
		return missing()
	}
	return 200, map[string]any{"ref": "refs/heads/" + m[0], "object": map[string]any{"sha": at}}
}

func (f *Forge) deleteRef(_ *http.Request, m []string, _ map[string]any) (int, any) {
	if _, err := f.git("update-ref", "-d", "refs/heads/"+m[0]); err != nil {
		return http.StatusUnprocessableEntity, map[string]any{"message": "Reference does not exist"}
	}
	return http.StatusNoContent, nil
}

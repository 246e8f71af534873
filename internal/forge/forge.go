// Package forge reads issues and pull requests of GitHub and writes comments and pull requests there. It knows one
// repository at a time. Every create looks for what an earlier attempt has made, so each operation can be repeated.
//
// The token is sent to the address of the API only, and no error or result contains it.
package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v93/github"

	"github.com/passbook-run/passbook/internal/environ"
)

// GitHub is the forge of settings that name none.
const GitHub = "https://github.com"

// Repo is a repository of a forge.
type Repo struct{ Owner, Name string }

func (r Repo) String() string { return r.Owner + "/" + r.Name }

// Parse returns the repository of a remote's address, which must be on the forge.
func Parse(forge, remote string) (Repo, error) {
	text := strings.TrimSpace(remote)
	if host, rest, ok := strings.Cut(text, ":"); ok && !strings.Contains(text, "://") { // git@host:owner/name
		text = "ssh://" + host + "/" + rest
	}
	u, err := url.Parse(text)
	base, wrong := url.Parse(forge)
	if err = errors.Join(err, wrong); err != nil {
		return Repo{}, errors.New("read the address of the remote: it is not a URL")
	}
	same := u.Host == base.Host || u.Scheme == "ssh" && u.Hostname() == base.Hostname()
	parts := strings.Split(strings.Trim(strings.TrimSuffix(u.Path, ".git"), "/"), "/")
	switch {
	case !same:
		return Repo{}, fmt.Errorf("the remote is on %s, and the setting forge.url names %s: set forge.url to the address of "+
			"its forge", cmp.Or(u.Host, "this host"), base.Host)
	case len(parts) != 2 || parts[0] == "" || parts[1] == "" || path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/"):
		return Repo{}, fmt.Errorf("the address of the remote names no repository OWNER/NAME: %s", u.Redacted())
	}
	return Repo{parts[0], parts[1]}, nil
}

// Remote is the address of the repository for git over HTTPS.
func Remote(forge string, r Repo) string {
	return strings.TrimSuffix(forge, "/") + "/" + r.String() + ".git"
}

// API returns the address of the API of a forge.
func API(forge string) string {
	if strings.TrimSuffix(forge, "/") == GitHub {
		return "https://api.github.com/"
	}
	return strings.TrimSuffix(forge, "/") + "/api/v3/"
}

// ErrNoToken reports that this host has no token for a forge.
var ErrNoToken = errors.New("no token for the forge")

// Token returns the operator's token on this host: GITHUB_TOKEN, GH_TOKEN, or what gh has for the host of the forge.
func Token(ctx context.Context, forge string, env []string) (string, error) {
	for _, name := range []string{"GITHUB_TOKEN", "GH_TOKEN"} {
		if t := strings.TrimSpace(environ.Value(env, name)); t != "" {
			return t, nil
		}
	}
	u, err := url.Parse(forge)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, environ.Program("gh", env), "auth", "token", "--hostname", u.Host)
	cmd.Env = env
	out, err := cmd.Output()
	if t := strings.TrimSpace(string(out)); err == nil && t != "" {
		return t, nil
	}
	return "", fmt.Errorf("%w %s: set GITHUB_TOKEN where the worker starts, or log in with gh (gh auth login)", ErrNoToken,
		u.Host)
}

// LimitError reports that the forge takes no requests of this account before a time.
type LimitError struct {
	Account string // host of the forge
	Until   time.Time
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the rate limit of %s: it takes requests again at %s", e.Account, e.Until.UTC().Format(time.RFC3339))
}

// Options configure a client.
type Options struct {
	Forge string // address of the forge; empty: [GitHub]
	Token string
	Repo  Repo
	Cache *Cache // of answers; nil: none
}

// Client talks to one repository of a forge.
type Client struct {
	api     *github.Client
	repo    Repo
	host    string
	plain   *http.Client // without the token
	levels  map[string]string
	account string
}

// New returns a client.
func New(o Options) (*Client, error) {
	api := API(cmp.Or(o.Forge, GitHub))
	u, err := url.Parse(api)
	if err != nil || u.Scheme != "https" && !isLoopback(u.Hostname()) {
		return nil, fmt.Errorf("the address of the forge %s is not an https address", o.Forge)
	}
	t := &transport{host: u.Host, token: o.Token, cache: cmp.Or(o.Cache, new(Cache))}
	const timeout = time.Minute
	client, err := github.NewClient(github.WithHTTPClient(&http.Client{Transport: t, Timeout: timeout}),
		github.WithURLs(&api, &api), github.WithUserAgent("passbook"), github.WithDisableRateLimitCheck())
	if err != nil {
		return nil, err
	}
	return &Client{api: client, repo: o.Repo, host: u.Host, plain: &http.Client{Timeout: timeout},
		levels: map[string]string{}}, nil
}

func isLoopback(host string) bool { return host == "127.0.0.1" || host == "::1" || host == "localhost" }

// Cache keeps answers with their ETags, so that a repeated read that found nothing new costs nothing of the rate limit.
// The zero value is empty. It is safe for concurrent use.
type Cache struct {
	mu      sync.Mutex
	answers map[string]answer
}

type answer struct {
	etag   string
	header http.Header
	body   []byte
}

const (
	maxCached = 512
	maxBody   = 4 << 20
)

func (c *Cache) find(key string) (answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.answers[key]
	return a, ok
}

func (c *Cache) keep(key string, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil || len(c.answers) >= maxCached {
		c.answers = map[string]answer{}
	}
	c.answers[key] = a
}

// transport adds the token for the host of the API only, and the ETag of the last answer.
type transport struct {
	host, token string
	cache       *Cache
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Del("Authorization")
	if req.URL.Host == t.host {
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	key := req.URL.String() + " " + req.Header.Get("Accept")
	known, cached := t.cache.find(key)
	if cached = cached && req.Method == http.MethodGet; cached {
		req.Header.Set("If-None-Match", known.etag)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	switch {
	case err != nil || req.Method != http.MethodGet:
		return res, err
	case res.StatusCode == http.StatusNotModified && cached:
		_ = res.Body.Close()
		res.StatusCode, res.Status = http.StatusOK, "200 OK"
		for name, values := range known.header {
			if _, set := res.Header[name]; !set {
				res.Header[name] = values
			}
		}
		res.Body = io.NopCloser(strings.NewReader(string(known.body)))
	case res.StatusCode == http.StatusOK && res.Header.Get("ETag") != "":
		body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
		_ = res.Body.Close()
		if err != nil {
			return nil, err
		}
		t.cache.keep(key, answer{res.Header.Get("ETag"), res.Header.Clone(), body})
		res.Body = io.NopCloser(strings.NewReader(string(body)))
	}
	return res, nil
}

// failed describes an error of the API without its address, and turns a rate limit into a [*LimitError].
func (c *Client) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	const unknown = time.Minute
	var rate *github.RateLimitError
	var abuse *github.AbuseRateLimitError
	var response *github.ErrorResponse
	switch {
	case errors.As(err, &rate):
		return &LimitError{c.host, rate.Rate.Reset.Time}
	case errors.As(err, &abuse):
		wait := unknown
		if abuse.RetryAfter != nil {
			wait = *abuse.RetryAfter
		}
		return &LimitError{c.host, time.Now().Add(wait)}
	case errors.As(err, &response) && response.Response.StatusCode == http.StatusTooManyRequests:
		return &LimitError{c.host, time.Now().Add(unknown)}
	}
	return fmt.Errorf("%s of %s: %w", doing, c.repo, err)
}

// IsMissing reports whether the forge has no such thing, or hides it.
func IsMissing(err error) bool { return hasStatus(err, http.StatusNotFound, http.StatusGone) }

func hasStatus(err error, codes ...int) bool {
	var response *github.ErrorResponse
	if !errors.As(err, &response) || response.Response == nil {
		return false
	}
	for _, code := range codes {
		if response.Response.StatusCode == code {
			return true
		}
	}
	return false
}

// IsPermanent reports whether a repetition cannot succeed: the token lacks a permission, or the request is refused.
func IsPermanent(err error) bool {
	return hasStatus(err, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone,
		http.StatusUnprocessableEntity)
}

// pages collects all pages of a list, up to a bound: what is older is not read.
func pages[T any](c *Client, doing string, list func(github.ListOptions) ([]T, *github.Response, error)) (all []T, err error) {
	const most, size = 20, 100
	page := github.ListOptions{Page: 1, PerPage: size}
	for range most {
		some, res, err := list(page)
		if err != nil {
			return nil, c.failed(doing, err)
		}
		if all = append(all, some...); res.NextPage == 0 {
			break
		}
		page.Page = res.NextPage
	}
	return all, nil
}

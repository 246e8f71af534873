package console

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	maxBody   = 1 << 20  // bytes of a request
	maxHeader = 64 << 10 // bytes of the header of a request

	bodyTime  = 20 * time.Second // in which a body arrives
	pieceTime = 20 * time.Second // in which a client reads a piece of a response
)

// contentPolicy lets a page use only files of this server.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secured sets the headers that every response has.
func secured(h http.Header, tls bool) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	if tls {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// guard refuses requests that a page of another origin makes a browser send, and addresses that mean another path than
// they show. It runs before anything else sees a request.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secured(w.Header(), s.https())
		w = patient{w, s.pieceTime}
		switch why := s.foreign(r); {
		case why != "":
			refuseTo(w, r, newProblem(codeForbidden, why))
		case !plainPath(r.URL):
			refuseTo(w, r, newProblem("not_found", "there is nothing at this address; /openapi.json lists the addresses"))
		case !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete}, r.Method):
			w.Header().Set("Allow", "GET, HEAD, POST")
			refuseTo(w, r, newProblem(codeMethod, r.Method+" is not used here; /openapi.json lists the methods"))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// foreign explains why a request may come from a page of another origin; empty: it does not.
func (s *Server) foreign(r *http.Request) string {
	origins, site := r.Header.Values("Origin"), r.Header.Get("Sec-Fetch-Site")
	switch {
	case !s.named(r.Host): // DNS rebinding: a foreign name that resolves to this machine
		return "this server does not answer as " + r.Host + "; open it at " + s.base
	case len(origins) > 1, len(origins) == 1 && !s.own(origins[0], r.Host):
		return "pages of another origin may not use this server"
	case site != "" && site != "same-origin" && site != "none" && !opensPage(r):
		return "other sites may only link to this server"
	}
	return ""
}

// own reports whether an Origin header is that of the server as the browser sees it.
func (s *Server) own(origin, host string) bool {
	if s.proxied {
		return origin == s.base
	}
	scheme := "http://"
	if s.https() {
		scheme = "https://"
	}
	return origin == scheme+host
}

// opensPage reports whether the browser opens a page in a tab.
func opensPage(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document"
}

// named reports whether a Host header names this server. Its port may differ: it may be forwarded.
func (s *Server) named(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	host = strings.Trim(name, "[]")
	return everywhere(host) || slices.ContainsFunc(s.names, func(n string) bool { return strings.EqualFold(n, host) })
}

// everywhere reports whether a host, with or without a port, is a name by which browsers know every port of their
// machine.
func everywhere(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// plainPath reports whether a path means what it shows: no dots, empty parts, control characters or encoded slashes.
func plainPath(u *url.URL) bool {
	p, raw := u.Path, strings.ToLower(u.EscapedPath())
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return strings.HasPrefix(p, "/") && p == clean && !strings.Contains(raw, "%2f") && !strings.Contains(raw, "%5c") &&
		!strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
}

// withBody reads the body of a request, which is small and arrives in time, so that no handler waits for it.
func withBody(w http.ResponseWriter, r *http.Request, limit time.Duration) (*http.Request, *problem) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	long := newProblem(codeTooLarge, "the body is longer than 1 MiB; send less")
	if r.ContentLength > maxBody {
		w.Header().Set("Connection", "close")
		return r, &long
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(limit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		p := newProblem("failed", "read the request: "+err.Error())
		return r, &p
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		w.Header().Set("Connection", "close")
		p := newProblem("invalid_input", "read the request: "+err.Error())
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			p = long
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			p = newProblem(codeSlow, "the body did not arrive in time")
		}
		return r, &p
	}
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		p := newProblem("failed", "read the request: "+err.Error())
		return r, &p
	}
	r = r.WithContext(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return r, nil
}

// mediaType is the type of the body of a request, without parameters.
func mediaType(r *http.Request) string {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

// unwrapper is a response in another one, for [http.ResponseController].
type unwrapper interface{ Unwrap() http.ResponseWriter }

var _ unwrapper = patient{}

// patient is a response that is given up if the client does not read it.
type patient struct {
	http.ResponseWriter
	limit time.Duration
}

// Unwrap returns the response of the server.
func (p patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Write writes a piece of the response.
func (p patient) Write(data []byte) (int, error) {
	err := http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(p.limit))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return p.ResponseWriter.Write(data)
}

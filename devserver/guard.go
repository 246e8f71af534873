package main

import (
	"net"
	"net/http"

	"github.com/labstack/echo/v4"
)

// guard refuses requests that a page of another origin makes a browser send, before anything else sees them.
type guard struct{ ip string } // that the Web UI listens on

func (g guard) check(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		switch {
		case !g.named(r.Host): // DNS rebinding: a foreign name that resolves to this machine
			return echo.NewHTTPError(http.StatusForbidden, "this server answers only as 127.0.0.1 or localhost")
		case r.Header.Get(echo.HeaderOrigin) != "" && r.Header.Get(echo.HeaderOrigin) != "http://"+r.Host:
			return echo.NewHTTPError(http.StatusForbidden, "pages of another origin may not use this server")
		case fromElsewhere(r) && !opensPage(r):
			return echo.NewHTTPError(http.StatusForbidden, "other sites may only link to this server")
		}
		return next(c)
	}
}

// named reports whether a Host header names this machine. Its port may differ: it may be forwarded.
func (g guard) named(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && (ip.IsLoopback() || ip.Equal(net.ParseIP(g.ip)))
}

// fromElsewhere reports whether another page caused the request, according to the browser. Another port of this
// machine is the same site, and may belong to another user.
func fromElsewhere(r *http.Request) bool {
	site := r.Header.Get(echo.HeaderSecFetchSite)
	return site != "" && site != "same-origin" && site != "none"
}

// opensPage reports whether the browser opens a page in a tab.
func opensPage(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document"
}

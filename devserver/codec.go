package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/labstack/echo/v4"
)

const (
	codecPath  = "/codec"
	codecLimit = 32 << 20 // bytes of a request
)

// codecProxy passes payloads of a logged-in browser to the codec endpoint, with the token that only the user has.
type codecProxy struct{ endpoint, token string }

// codecIsLocal reports whether the codec endpoint is on this machine. Browsers reach any other one directly.
func (o options) codecIsLocal() bool {
	u, err := url.Parse(o.uiCodec)
	if err != nil || o.uiCodec == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func (p codecProxy) handle(c echo.Context) error {
	verb := c.Param("verb")
	if verb != "decode" && verb != "encode" {
		return echo.ErrNotFound
	}
	token, err := secretOf(p.token)
	if err != nil {
		return echo.NewHTTPError(http.StatusBadGateway, fmt.Sprintf("read the token of the codec endpoint: %v", err))
	}
	r, err := http.NewRequestWithContext(c.Request().Context(), http.MethodPost,
		strings.TrimSuffix(p.endpoint, "/")+"/"+verb, http.MaxBytesReader(c.Response(), c.Request().Body, codecLimit))
	if err != nil {
		return err
	}
	r.Header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	r.Header.Set("X-Namespace", c.Request().Header.Get("X-Namespace"))
	if token != "" {
		r.Header.Set(echo.HeaderAuthorization, "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return echo.NewHTTPError(http.StatusBadGateway, fmt.Sprintf("ask the codec endpoint: %v; start it with "+
			"starter codec serve", err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4*codecLimit))
	if err != nil {
		return err
	}
	return c.Blob(resp.StatusCode, resp.Header.Get(echo.HeaderContentType), body)
}

// secretOf returns the value of env:NAME or file:PATH; empty: none is needed.
func secretOf(ref string) (string, error) {
	kind, where, _ := strings.Cut(ref, ":")
	switch kind {
	case "":
		return "", nil
	case "env":
		return strings.TrimSpace(os.Getenv(where)), nil
	case "file":
		text, err := os.ReadFile(where)
		return strings.TrimSpace(string(text)), err
	}
	return "", fmt.Errorf("want env:NAME or file:PATH")
}

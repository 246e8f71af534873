package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/temporalio/ui-server/v2/server/api"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/headers"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"
)

// newUI returns the Web UI: the routes of Temporal's ui-server behind this server's own checks. Its NewServer is not
// used, because it has no login but OIDC, and does not check the Host of a request.
func (s *server) newUI(o options) (*http.Server, error) {
	conf := s.uiConfig(o)
	provider, err := uiconfig.NewConfigProviderWithRefresh(conf)
	if err != nil {
		return nil, fmt.Errorf("set up the Web UI: %w", err)
	}
	e := echo.New()
	e.Pre(guard{ip: o.uiIP}.check)
	e.Use(middleware.Recover(), middleware.Gzip(), middleware.Secure())
	if o.login != "" {
		l, err := newLogin(o.login, s.uiAddress)
		if err != nil {
			return nil, err
		}
		e.GET(loginPath, l.handle)
		e.Use(l.require)
	}
	e.Use(csrf.EnsureTokenCookie(false), middleware.CSRFWithConfig(csrf.MiddlewareConfig(provider, false)))
	if o.codecIsLocal() {
		e.POST(codecPath+"/:verb", codecProxy{endpoint: o.uiCodec, token: o.uiCodecToken}.handle)
	}
	route.SetHealthRoute(e)
	forward := []api.Middleware{headers.WithForwardHeaders([]string{"Caller-Type"})}
	assets, err := assets()
	err = errors.Join(err, route.SetAPIRoutes(e, provider, forward), route.SetUIRoutes(e, "", assets, provider))
	if err != nil {
		return nil, fmt.Errorf("set up the Web UI: %w", err)
	}
	route.SetRenderRoute(e, "/")
	return &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}, nil
}

func assets() (fs.FS, error) {
	all, err := ui.Assets()
	if err != nil {
		return nil, err
	}
	return fs.Sub(all, "local")
}

func (s *server) uiConfig(o options) *uiconfig.Config {
	codec := o.uiCodec
	if o.codecIsLocal() {
		codec = "http://" + s.uiAddress + codecPath // with the login, and with the token that pages must not have
	}
	return &uiconfig.Config{
		TemporalGRPCAddress: s.address,
		TLS:                 s.uiTLS(),
		EnableUI:            true,
		DefaultNamespace:    o.namespaces[0],
		DisableNewsFetch:    true,
		Codec:               uiconfig.Codec{Endpoint: codec},
	}
}

// uiTLS is how the Web UI connects to the frontend.
func (s *server) uiTLS() uiconfig.TLS {
	if s.certs == "" {
		return uiconfig.TLS{}
	}
	return uiconfig.TLS{CaFile: s.certs.ca(), CertFile: s.certs.cert(nameUI), KeyFile: s.certs.key(nameUI),
		EnableHostVerification: true, ServerName: "localhost"}
}

package host

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// probeStep bounds each step of a probe.
const probeStep = time.Second

// probe connects to the server step by step, without the SDK, and returns the step that fails. It returns nil if no
// step fails before ctx ends.
func (c Connection) probe(ctx context.Context) *ConnectError {
	failed := c.steps(ctx)
	if ctx.Err() != nil {
		return nil // the step failed because time is up
	}
	return failed
}

func (c Connection) steps(ctx context.Context) *ConnectError {
	addr := c.Options.HostPort
	if strings.Contains(addr, "://") || proxied(addr) {
		return nil // gRPC resolves it
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return c.fail(StageAddress, err, "Set TEMPORAL_ADDRESS to HOST:PORT, as in localhost:7233",
			"%q is not an address of a Temporal server (%v)", addr, err)
	}
	if failed := c.resolve(ctx, host); failed != nil {
		return failed
	}
	conn, err := dialTCP(ctx, addr)
	if err != nil {
		return c.fail(StageListen, err, c.remedy(), "nothing listens at %s (%s)", addr, cause(err))
	}
	defer conn.Close()
	if conf := c.Options.ConnectionOptions.TLS; conf != nil && !c.Options.ConnectionOptions.TLSDisabled {
		return c.checkTLS(ctx, conn, conf, host)
	}
	return c.identify(ctx)
}

func proxied(addr string) bool {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: addr}})
	return err == nil && proxy != nil
}

func (c Connection) resolve(ctx context.Context, host string) *ConnectError {
	ctx, cancel := context.WithTimeout(ctx, 2*probeStep)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		return c.fail(StageAddress, err,
			"Check TEMPORAL_ADDRESS, the profile in temporal.toml, and the network of this machine",
			"the name %s does not resolve (%s)", host, cause(err))
	}
	return nil
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 2 * probeStep}
	return d.DialContext(ctx, "tcp", addr)
}

// cause is the short form of a network error.
func cause(err error) string {
	var timeout net.Error
	var name *net.DNSError
	switch {
	case errors.As(err, &name):
		return name.Err
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	}
	return err.Error()
}

// checkTLS tries the handshake that the settings require.
func (c Connection) checkTLS(ctx context.Context, conn net.Conn, conf *tls.Config, host string) *ConnectError {
	conf = conf.Clone()
	conf.NextProtos = []string{"h2"}
	if conf.ServerName == "" {
		conf.ServerName = host
	}
	addr := c.Options.HostPort
	var plain tls.RecordHeaderError
	var refused *net.OpError
	switch err := handshake(ctx, conn, conf); {
	case err == nil:
		return nil
	case !c.Explicit:
		return c.fail(StageTLS, err, c.remedy(), "the TLS handshake with the embedded server at %s fails (%v)", addr, err)
	case errors.As(err, &plain):
		return c.fail(StageTLS, err, "Set TEMPORAL_TLS=false; an API key or a certificate enables TLS",
			"TLS is enabled, and the server at %s does not use it", addr)
	case errors.As(err, &refused) && refused.Op == "remote error":
		return c.fail(StageTLS, err,
			"Set TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH to the client's certificate",
			"%s refuses the TLS handshake (%v)", addr, err)
	default:
		return c.fail(StageTLS, err,
			"Set TEMPORAL_TLS_SERVER_CA_CERT_PATH to the file of its certificate authority, or "+
				"TEMPORAL_TLS_SERVER_NAME to the name in its certificate",
			"the TLS handshake with %s fails (%v)", addr, err)
	}
}

// handshake also waits for an alert: a server may reject the client's certificate after the handshake.
func handshake(ctx context.Context, conn net.Conn, conf *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, probeStep)
	defer cancel()
	t := tls.Client(conn, conf)
	if err := t.HandshakeContext(ctx); err != nil {
		return err
	}
	if err := t.SetReadDeadline(time.Now().Add(probeStep / 2)); err != nil {
		return err
	}
	_, err := t.Read(make([]byte, 1))
	var refused *net.OpError
	if errors.As(err, &refused) && refused.Op == "remote error" {
		return err
	}
	return nil
}

// identify recognizes what often listens instead of a Temporal server without TLS: one with TLS, or a web server.
func (c Connection) identify(ctx context.Context) *ConnectError {
	addr := c.Options.HostPort
	if usesTLS(ctx, addr) {
		return c.fail(StageTLS, nil,
			"Set TEMPORAL_TLS=true, and TEMPORAL_TLS_SERVER_CA_CERT_PATH for a private authority",
			"the server at %s uses TLS, and TLS is not enabled", addr)
	}
	if usesHTTP(ctx, addr) {
		return c.fail(StageServer, nil,
			"Check the port in TEMPORAL_ADDRESS: the Web UI has another port than the server, which is usually 7233",
			"the server at %s is a web server, no Temporal server", addr)
	}
	return nil
}

func usesTLS(ctx context.Context, addr string) bool {
	conn, err := dialTCP(ctx, addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, probeStep/2)
	defer cancel()
	conf := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // no data is sent
	err = tls.Client(conn, conf).HandshakeContext(ctx)
	var refused *net.OpError
	return err == nil || errors.As(err, &refused) && refused.Op == "remote error"
}

func usesHTTP(ctx context.Context, addr string) bool {
	conn, err := dialTCP(ctx, addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(probeStep / 2)); err != nil {
		return false
	}
	if _, err := fmt.Fprintf(conn, "HEAD / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", addr); err != nil {
		return false
	}
	reply := make([]byte, 7)
	n, err := conn.Read(reply)
	return err == nil && bytes.HasPrefix(reply[:n], []byte("HTTP/1."))
}

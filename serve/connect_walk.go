package serve

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

// stride bounds each step of a walk.
const stride = time.Second

// walk goes the way to the server step by step, beside the SDK, and says where it is closed. Nil: the way is open as far as can be seen in time.
func (c Connection) walk(ctx context.Context) *ConnectError {
	closed := c.steps(ctx)
	if ctx.Err() != nil {
		return nil // what failed is the time
	}
	return closed
}

func (c Connection) steps(ctx context.Context) *ConnectError {
	addr := c.Options.HostPort
	if strings.Contains(addr, "://") || proxied(addr) {
		return nil // gRPC knows the way
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return c.fail(StageAddress, err, "Set TEMPORAL_ADDRESS to HOST:PORT, as in localhost:7233", "%q is no address of a Temporal server (%v)", addr, err)
	}
	if closed := c.resolve(ctx, host); closed != nil {
		return closed
	}
	conn, err := reach(ctx, addr)
	if err != nil {
		return c.fail(StageListen, err, c.remedy(), "nothing listens at %s (%s)", addr, cause(err))
	}
	defer conn.Close()
	if conf := c.Options.ConnectionOptions.TLS; conf != nil && !c.Options.ConnectionOptions.TLSDisabled {
		return c.shake(ctx, conn, conf, host)
	}
	return c.strangers(ctx)
}

func proxied(addr string) bool {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: addr}})
	return err == nil && proxy != nil
}

func (c Connection) resolve(ctx context.Context, host string) *ConnectError {
	ctx, cancel := context.WithTimeout(ctx, 2*stride)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		return c.fail(StageAddress, err, "See TEMPORAL_ADDRESS with `starter config`, and whether this machine is on the network", "the name %s does not resolve (%s)", host, cause(err))
	}
	return nil
}

func reach(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 2 * stride}
	return d.DialContext(ctx, "tcp", addr)
}

// cause is the last word of a network error.
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

// shake tries the handshake that the settings ask for.
func (c Connection) shake(ctx context.Context, conn net.Conn, conf *tls.Config, host string) *ConnectError {
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
	case errors.As(err, &plain):
		return c.fail(StageTLS, err, "Set TEMPORAL_TLS=false; an API key or a certificate turns TLS on by itself", "TLS is asked for, and what listens at %s does not speak it", addr)
	case errors.As(err, &refused) && refused.Op == "remote error":
		return c.fail(StageTLS, err, "Give the client's certificate: TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH", "%s refuses the TLS handshake (%v)", addr, err)
	default:
		return c.fail(StageTLS, err, "Name its authority in TEMPORAL_TLS_SERVER_CA_CERT_PATH, or the name in its certificate in TEMPORAL_TLS_SERVER_NAME",
			"the TLS handshake with %s fails (%v)", addr, err)
	}
}

// handshake also waits a moment for what a server says to a certificate only after the handshake.
func handshake(ctx context.Context, conn net.Conn, conf *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, stride)
	defer cancel()
	t := tls.Client(conn, conf)
	if err := t.HandshakeContext(ctx); err != nil {
		return err
	}
	if err := t.SetReadDeadline(time.Now().Add(stride / 2)); err != nil {
		return err
	}
	_, err := t.Read(make([]byte, 1))
	var refused *net.OpError
	if errors.As(err, &refused) && refused.Op == "remote error" {
		return err
	}
	return nil
}

// strangers looks for what is often there instead of a server without TLS: one with TLS, or a web server.
func (c Connection) strangers(ctx context.Context) *ConnectError {
	addr := c.Options.HostPort
	if speaksTLS(ctx, addr) {
		return c.fail(StageTLS, nil, "Set TEMPORAL_TLS=true, and TEMPORAL_TLS_SERVER_CA_CERT_PATH for an authority of your own", "what listens at %s speaks TLS, and TLS is not asked for", addr)
	}
	if speaksHTTP(ctx, addr) {
		return c.fail(StageServer, nil, "See the port in TEMPORAL_ADDRESS: the Web UI has a port of its own; a Temporal server usually has 7233", "what listens at %s is a web server, no Temporal server", addr)
	}
	return nil
}

func speaksTLS(ctx context.Context, addr string) bool {
	conn, err := reach(ctx, addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, stride/2)
	defer cancel()
	err = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}).HandshakeContext(ctx) //nolint:gosec // nothing is said on it
	var refused *net.OpError
	return err == nil || errors.As(err, &refused) && refused.Op == "remote error"
}

func speaksHTTP(ctx context.Context, addr string) bool {
	conn, err := reach(ctx, addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(stride / 2)); err != nil {
		return false
	}
	if _, err := fmt.Fprintf(conn, "HEAD / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", addr); err != nil {
		return false
	}
	said := make([]byte, 7)
	n, err := conn.Read(said)
	return err == nil && bytes.HasPrefix(said[:n], []byte("HTTP/1."))
}

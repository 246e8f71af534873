package console

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/login"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/keyfile"
)

// Listening is where a server listens.
type Listening struct {
	Address   string // host and port
	Cert, Key string // files; empty: no TLS
	Proxy     string // URL of the proxy that clients use; empty: none
}

// endFor is the time that requests get to end with the server.
const endFor = 10 * time.Second

func invalid(format string, args ...any) error {
	return &api.InputError{Err: fmt.Errorf(format, args...)}
}

// Serve answers requests until ctx ends, and then lets running requests end. It calls ready with the URL that browsers
// open, and that for programs, whose system need not resolve the name of the console.
func Serve(ctx context.Context, o Options, at Listening, ready func(base, programs string) error) error {
	secure, names, err := at.tls()
	if err != nil {
		return err
	}
	if err := at.check(); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.Address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return invalid("listen on %s: another program uses the port, possibly another console; end it, or choose another "+
			"port: --listen 127.0.0.1:PORT", at.Address)
	}
	if err != nil {
		return invalid("listen on %s: %w; choose another address with --listen", at.Address, err)
	}
	base, err := at.base(l.Addr(), names)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	programs := base.String()
	if at.Proxy == "" && secure == nil {
		if base.Host, err = consoleName(o.Host.Settings.StateDir, base.Port()); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	s, err := newServer(o, base, append(names, base.Hostname()), at.Proxy != "")
	if err != nil {
		return errors.Join(err, l.Close())
	}
	lock, err := host.MarkConsole(ctx, o.Host.Settings.StateDir, s.base, time.Now())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if err := ready(s.base, programs); err != nil {
		return errors.Join(err, l.Close(), lock.Remove())
	}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	return errors.Join(s.serve(ctx, l), lock.Remove())
}

// consoleName returns the host under which browsers open the console of a state directory: a random name, made once.
// They send cookies of 127.0.0.1 to every port of the machine, and those of this name to who knows it.
func consoleName(stateDir, port string) (string, error) {
	key, err := keyfile.File{Path: filepath.Join(stateDir, "console", "name.key"),
		Replace: "remove it, and start the console again"}.Load()
	if err != nil {
		return "", fmt.Errorf("read the name of the console: %w", err)
	}
	name := strings.ToLower(base32.StdEncoding.EncodeToString(key)[:10])
	return net.JoinHostPort(name+".localhost", port), nil
}

func (s *Server) serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.errors.Handler(), slog.LevelDebug),
		// requests get some time when the program ends
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the console: %w", err)
	case <-ctx.Done():
	}
	close(s.ending)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endFor)
	defer cancel()
	err := srv.Shutdown(last)
	if err != nil {
		err = srv.Close()
	}
	return err
}

// tls reads the certificate. names are the hosts that it is for.
func (at Listening) tls() (c *tls.Config, names []string, err error) {
	switch {
	case at.Cert == "" && at.Key == "":
		return nil, nil, nil
	case at.Cert == "" || at.Key == "":
		return nil, nil, invalid("--tls-cert and --tls-key belong together: name both files")
	case at.Proxy != "":
		return nil, nil, invalid("--tls-cert and --behind-proxy exclude each other: the proxy has the certificate")
	}
	pair, err := tls.LoadX509KeyPair(at.Cert, at.Key)
	if err != nil {
		return nil, nil, invalid("read the certificate %s with the key %s: %w; name PEM files that belong together",
			at.Cert, at.Key, err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, nil, invalid("read the certificate %s: %w", at.Cert, err)
	}
	names = append(names, leaf.DNSNames...)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, names, nil
}

// check refuses an address that other machines reach without encryption.
func (at Listening) check() error {
	host, port, err := net.SplitHostPort(at.Address)
	if err != nil || port == "" {
		return invalid("--listen is %q: write HOST:PORT, as in 127.0.0.1:8400", at.Address)
	}
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() || at.Cert != "" || at.Proxy != "" {
		return nil
	}
	return invalid("listen on %s: other machines could reach it, and tokens and prompts would not be encrypted; give "+
		"--tls-cert and --tls-key, or put it behind a proxy with TLS and name that: --behind-proxy https://HOST", at.Address)
}

// base is the URL of the server as clients see it. names are those of the certificate.
func (at Listening) base(actual net.Addr, names []string) (*url.URL, error) {
	if at.Proxy != "" {
		u, err := url.Parse(at.Proxy)
		if err != nil || u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil ||
			u.Fragment != "" {
			return nil, invalid("--behind-proxy is %q: write the URL that browsers open, without a path, as in "+
				"https://passbook.example.org", at.Proxy)
		}
		ip := net.ParseIP(u.Hostname())
		here := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
		if u.Scheme != "https" && (u.Scheme != "http" || !here) {
			return nil, invalid("--behind-proxy is %q: the proxy must use https, unless it is on this machine", at.Proxy)
		}
		return &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}, nil
	}
	u := &url.URL{Scheme: "http", Host: actual.String()}
	if at.Cert != "" {
		u.Scheme = "https"
	}
	if host, port, err := net.SplitHostPort(u.Host); err == nil && net.ParseIP(host).IsUnspecified() {
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("find the name of this machine: %w", err)
		}
		u.Host = net.JoinHostPort(name, port)
	}
	if whole := func(name string) bool { return !strings.Contains(name, "*") }; !slices.Contains(names, u.Hostname()) {
		if i := slices.IndexFunc(names, whole); i >= 0 { // browsers accept the certificate for it
			u.Host = net.JoinHostPort(names[i], u.Port())
		}
	}
	return u, nil
}

// Link makes a login link for the running console of a state directory that was started last.
func Link(stateDir string, now time.Time) (string, error) {
	urls, err := host.Consoles(stateDir)
	if err != nil {
		return "", err
	}
	if len(urls) == 0 {
		return "", invalid("make a login link: no console runs with the state directory %s; start it with: "+
			"starter console", stateDir)
	}
	path, err := login.NewLink(stateDir, now)
	if err != nil {
		return "", err
	}
	return urls[len(urls)-1] + path, nil
}

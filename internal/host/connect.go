package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/codec"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/redact"
	"github.com/passbook-run/passbook/internal/secrets"
)

const (
	dialTimeout = 5 * time.Second
	probeAfter  = 300 * time.Millisecond // a dial that takes longer is diagnosed while it continues
	slowServer  = time.Minute            // how long a worker that starts waits for a server on a busy machine
)

// Connection holds the client options that envconfig found.
type Connection struct {
	Options  client.Options
	Explicit bool       // an address is configured that is not the embedded server's
	Role     certs.Role // what the client does on the embedded server; empty: certs.CLI

	stateDir string // of the embedded server
}

// FindConnection reads the TEMPORAL_* variables and the profile. The settings determine how payloads are encrypted.
func FindConnection(settings config.Settings) (Connection, error) { return findAt(settings, "") }

// findAt is [FindConnection] for an address that replaces the configured one, unless it is empty. An address that is
// the embedded server's is not explicit: `starter server env` sets it.
func findAt(settings config.Settings, address string) (c Connection, err error) {
	crypt, err := codec.Load(settings.Codec, os.Getenv)
	if err != nil {
		return c, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("connection to Temporal (TEMPORAL_* variables, profile): %w", err)
		}
	}()
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{})
	if err != nil {
		return c, err
	}
	profile.Address = cmp.Or(address, profile.Address)
	last, err := LastServer(settings.StateDir)
	if err != nil {
		return c, err
	}
	c = Connection{Explicit: profile.Address != "" && !isEmbedded(profile, last), stateDir: settings.StateDir}
	if !c.Explicit {
		profile.TLS = nil // the files of an earlier start may be gone; those of the running server are read on dialing
	}
	if c.Options, err = profile.ToClientOptions(envconfig.ToClientOptionsRequest{}); err != nil {
		return c, err
	}
	c.Options.DataConverter, c.Options.FailureConverter = crypt.Converter(), crypt.Failures()
	c.Options.Namespace = cmp.Or(c.Options.Namespace, client.DefaultNamespace)
	return c, nil
}

// isEmbedded reports whether a profile names the recorded server: by its address while it runs, or by its certificates,
// which no other server accepts, at any port of this machine: a restarted server may have moved to another one.
func isEmbedded(p envconfig.ClientConfigProfile, last Server) bool {
	if last.Address == "" {
		return false
	}
	if p.TLS != nil && filepath.Clean(p.TLS.ClientCertPath) == last.Certs.Cert(certs.CLI) {
		return isLoopback(p.Address)
	}
	return last.Process.Alive() && sameAddress(p.Address, last.Address)
}

func sameAddress(a, b string) bool {
	host, port, err := net.SplitHostPort(a)
	bHost, bPort, bErr := net.SplitHostPort(b)
	if err != nil || bErr != nil || port != bPort {
		return false
	}
	return host == bHost || isLoopback(a) && isLoopback(b)
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// Dial connects and checks that the namespace exists. A non-empty address replaces the configured one. Dial returns
// within five seconds. The error is a [ConnectError] with the stage that failed.
func (c Connection) Dial(ctx context.Context, address string, logger *slog.Logger) (client.Client, error) {
	c.Options.HostPort = cmp.Or(address, c.Options.HostPort)
	if !c.Explicit {
		s, err := LastServer(c.stateDir)
		if err == nil && s.Certs != "" {
			c.Options.ConnectionOptions.TLS, err = s.TLS(cmp.Or(c.Role, certs.CLI))
		}
		if err != nil {
			return nil, err
		}
	}
	c.Options.Logger = log.NewStructuredLogger(logger)
	if isLoopback(c.Options.HostPort) {
		c.Options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{} // compression saves nothing there
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var cl client.Client
	done := make(chan error, 1)
	go func() { // the SDK keeps trying
		var err error
		if cl, err = client.DialContext(ctx, c.Options); err == nil {
			req := &workflowservice.DescribeNamespaceRequest{Namespace: c.Options.Namespace}
			if _, err = cl.WorkflowService().DescribeNamespace(ctx, req); err != nil {
				cl.Close()
			}
		}
		done <- err
	}()
	var failed *ConnectError
	select {
	case err := <-done:
		done <- err
	case <-time.After(probeAfter):
		// It is given the rest of the time if the server is only slow, as on a busy machine.
		if failed = c.probe(ctx); failed != nil && errors.Is(failed, context.DeadlineExceeded) {
			failed = nil
		} else if failed != nil {
			cancel()
		}
	}
	switch err := <-done; {
	case err == nil:
		return cl, nil
	case failed != nil:
		return nil, failed
	default:
		return nil, c.explain(ctx, err)
	}
}

// Operator returns an operator of this host that uses a dialed client. A non-empty address is the one that was dialed
// instead of the configured one.
func (c Connection) Operator(
	cl client.Client, address string, settings config.Settings, secrets *redact.Redactor,
) (operations.Operator, error) {
	host, err := HostID(settings.StateDir)
	return operations.Operator{
		Client: cl, Address: cmp.Or(address, c.Options.HostPort), Namespace: c.Options.Namespace, Settings: settings,
		Host: host, Build: build.Version(), By: User(), Redact: secrets, Converter: c.Options.DataConverter,
		Embedded: !c.Explicit,
	}, err
}

// User returns the name of the user who runs this program, for the journal.
func User() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}

// Target is the server and the namespace that a program of a user connects to. Zero values come from the settings file,
// from variables and from the profile.
type Target struct {
	Settings  *config.Settings
	Secrets   *redact.Redactor
	Address   string
	Namespace string
	Role      certs.Role // on the embedded server; empty: certs.CLI
	Converter converter.DataConverter
	Failures  converter.FailureConverter
	Logger    *slog.Logger
	Metrics   client.MetricsHandler // of the SDK; nil: none
	Detached  bool                  // background processes may stop meanwhile

	// Ensure returns the embedded server, which it may start; nil: it must run.
	Ensure func(context.Context) (Server, error)
	// Unlisted receives the cause if runs cannot be listed by status; nil: it is logged.
	Unlisted func(error)
}

// Open connects to a target, or to the embedded server of this host, and creates the search attributes. While the
// program is attached, background processes do not stop; release closes the client and detaches the program.
func Open(ctx context.Context, t Target) (o operations.Operator, release func() error, err error) {
	settings, err := t.withDefaults()
	if err != nil {
		return o, nil, err
	}
	conn, err := findAt(settings, t.Address)
	if err != nil {
		return o, nil, err
	}
	conn.Role, conn.Options.MetricsHandler = t.Role, t.Metrics
	conn.Options.Namespace = cmp.Or(t.Namespace, conn.Options.Namespace)
	conn.Options.DataConverter = cmp.Or(t.Converter, conn.Options.DataConverter)
	conn.Options.FailureConverter = cmp.Or(t.Failures, conn.Options.FailureConverter)
	if err := OpenState(ctx, settings.StateDir); err != nil {
		return o, nil, err
	}
	detach, address := func() error { return nil }, ""
	if !conn.Explicit && !t.Detached {
		if detach, err = Attach(ctx, settings.StateDir); err != nil {
			return o, nil, err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, detach())
		}
	}()
	if !conn.Explicit {
		if address, err = t.embedded(ctx, conn); err != nil {
			return o, nil, err
		}
	}
	cl, err := t.dial(ctx, conn, address)
	if err != nil {
		return o, nil, err
	}
	if o, err = conn.Operator(cl, address, settings, t.Secrets); err != nil {
		cl.Close()
		return o, nil, err
	}
	o.Environ = os.Environ()
	if err := EnsureAttributes(ctx, cl, o.Namespace); err != nil {
		t.Unlisted(err)
	} else {
		o.Attributes = true
	}
	renewing, stop := context.WithCancel(context.Background())
	if !conn.Explicit {
		go KeepCerts(renewing, settings.StateDir, func(err error) { t.Logger.Error("renew certificates", "error", err) })
	}
	return o, func() error { stop(); cl.Close(); return detach() }, nil
}

func (t *Target) withDefaults() (settings config.Settings, err error) {
	t.Logger = cmp.Or(t.Logger, discard)
	if t.Unlisted == nil {
		t.Unlisted = func(err error) { t.Logger.Warn("runs cannot be listed by status", "error", err) }
	}
	if t.Settings == nil {
		if settings, err = config.Load(nil); err != nil {
			return settings, err
		}
		t.Settings = &settings
	}
	if t.Secrets == nil {
		t.Secrets, err = secrets.New(*t.Settings, os.Environ())
	}
	return *t.Settings, err
}

// embedded returns the address of the embedded server.
func (t *Target) embedded(ctx context.Context, conn Connection) (string, error) {
	if t.Ensure != nil {
		s, err := t.Ensure(ctx)
		return s.Address, err
	}
	st, err := Read(conn.stateDir)
	if err == nil && st.Server == nil {
		err = conn.fail(StageListen, nil, "Run `starter server start`, or set the address of another server",
			"no Temporal server runs on this machine, and TEMPORAL_ADDRESS is not set")
	}
	if err != nil {
		return "", err
	}
	return st.Server.Address, nil
}

// dial connects. A worker tries again while the server is only slow.
func (t *Target) dial(ctx context.Context, conn Connection, address string) (client.Client, error) {
	for begun := time.Now(); ; {
		cl, err := conn.Dial(ctx, address, t.Logger)
		if t.Role != certs.Worker || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil ||
			time.Since(begun) > slowServer {
			return cl, err
		}
		t.Logger.Warn("the server answers slowly, the worker tries again", "error", err)
	}
}

package host

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/secrets"
)

// Target is the server and the namespace that a program of a user connects to. Zero values come from the settings file,
// from variables and from the profile.
type Target struct {
	Settings  *config.Settings
	Address   string
	Namespace string
	Role      certs.Role // on the embedded server; empty: certs.CLI
	Converter converter.DataConverter
	Failures  converter.FailureConverter
	Logger    *slog.Logger

	Metrics client.MetricsHandler // of the SDK; nil: none
}

// Open connects to a target, or to the embedded server that runs on this host, and creates the search attributes. While
// the program is attached, background processes do not stop; release closes the client and detaches the program.
func Open(ctx context.Context, t Target) (operations.Operator, func() error, error) {
	settings, err := t.settings()
	if err != nil {
		return operations.Operator{}, nil, err
	}
	conn, err := t.find(settings)
	if err != nil {
		return operations.Operator{}, nil, err
	}
	if err := OpenState(ctx, settings.StateDir); err != nil {
		return operations.Operator{}, nil, err
	}
	detach := func() error { return nil }
	if !conn.Explicit {
		if detach, err = Attach(ctx, settings.StateDir); err != nil {
			return operations.Operator{}, nil, err
		}
	}
	o, err := t.operator(ctx, conn, settings)
	if err != nil {
		return operations.Operator{}, nil, errors.Join(err, detach())
	}
	stop := func() {}
	if !conn.Explicit {
		stop = keepCerts(settings.StateDir, t.logger())
	}
	return o, func() error { stop(); o.Client.Close(); return detach() }, nil
}

// keepCerts renews the certificates while the program is connected.
func keepCerts(stateDir string, log *slog.Logger) (stop func()) {
	ctx, stop := context.WithCancel(context.Background())
	go KeepCerts(ctx, stateDir, func(err error) { log.Error("renew certificates", "error", err) })
	return stop
}

func (t Target) operator(ctx context.Context, conn Connection, settings config.Settings) (operations.Operator, error) {
	address, err := conn.embedded(settings.StateDir)
	if err != nil {
		return operations.Operator{}, err
	}
	redactor, err := secrets.New(settings, os.Environ())
	if err != nil {
		return operations.Operator{}, err
	}
	cl, err := conn.Dial(ctx, address, t.logger())
	if err != nil {
		return operations.Operator{}, err
	}
	o, err := conn.Operator(cl, address, settings, redactor)
	if err != nil {
		cl.Close()
		return operations.Operator{}, err
	}
	o.Environ = os.Environ()
	if err := EnsureAttributes(ctx, cl, o.Namespace); err != nil {
		t.logger().Warn("runs cannot be listed by status", "error", err)
	} else {
		o.Attributes = true
	}
	return o, nil
}

func (t Target) settings() (config.Settings, error) {
	if t.Settings != nil {
		return *t.Settings, nil
	}
	return config.Load(nil)
}

func (t Target) find(settings config.Settings) (Connection, error) {
	conn, err := findAt(settings, t.Address)
	if err != nil {
		return conn, err
	}
	conn.Role, conn.Options.MetricsHandler = t.Role, t.Metrics
	if t.Namespace != "" {
		conn.Options.Namespace = t.Namespace
	}
	if t.Converter != nil {
		conn.Options.DataConverter = t.Converter
	}
	if t.Failures != nil {
		conn.Options.FailureConverter = t.Failures
	}
	return conn, nil
}

func (t Target) logger() *slog.Logger {
	if t.Logger != nil {
		return t.Logger
	}
	return slog.New(slog.DiscardHandler)
}

// embedded returns the address of the embedded server that runs on this host; "" if another server is configured.
func (c Connection) embedded(stateDir string) (string, error) {
	if c.Explicit {
		return "", nil
	}
	st, err := Read(stateDir)
	if err != nil {
		return "", err
	}
	if st.Server == nil {
		return "", c.fail(StageListen, nil, "Run `starter server start`, or set the address of another server",
			"no Temporal server runs on this machine, and TEMPORAL_ADDRESS is not set")
	}
	return st.Server.Address, nil
}

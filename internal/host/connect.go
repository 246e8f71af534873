package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/codec"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/redact"
)

const (
	dialTimeout = 5 * time.Second
	probeAfter  = 300 * time.Millisecond // a dial that takes longer is diagnosed while it continues
)

// Connection holds the client options that envconfig found.
type Connection struct {
	Options  client.Options
	Explicit bool       // an address is configured that is not the embedded server's
	Role     certs.Role // what the client does on the embedded server; empty: certs.CLI

	stateDir string // of the embedded server
}

// Find reads the TEMPORAL_* variables and the profile. The settings determine how payloads are encrypted.
func FindConnection(settings config.Settings) (Connection, error) { return findAt(settings, "") }

// find is Find for an address that replaces the configured one, unless it is empty.
func findAt(settings config.Settings, address string) (Connection, error) {
	crypt, err := codec.Load(settings.Codec, os.Getenv)
	if err != nil {
		return Connection{}, err
	}
	c, err := configured(settings.StateDir, address)
	if err != nil {
		return Connection{}, fmt.Errorf("connection to Temporal (TEMPORAL_* variables, profile): %w", err)
	}
	c.Options.DataConverter, c.Options.FailureConverter = crypt.Converter(), crypt.Failures()
	if c.Options.Namespace == "" {
		c.Options.Namespace = client.DefaultNamespace
	}
	return c, nil
}

// Dial connects and checks that the namespace exists. A non-empty address replaces the configured one. Dial returns
// within five seconds. The error is an [Error] with the stage that failed.
func (c Connection) Dial(ctx context.Context, address string, logger *slog.Logger) (client.Client, error) {
	if address != "" {
		c.Options.HostPort = address
	}
	if err := c.authenticate(); err != nil {
		return nil, err
	}
	c.Options.Logger = log.NewStructuredLogger(logger)
	if isLoopback(c.Options.HostPort) {
		c.Options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{} // compression saves nothing there
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	done := make(chan dialResult, 1)
	go func() { done <- c.dial(ctx) }()
	select {
	case d := <-done:
		return c.result(ctx, d)
	case <-time.After(probeAfter):
	}
	// The SDK would keep trying. It is given the rest of the time if the server is only slow, as on a busy machine.
	if failed := c.probe(ctx); failed != nil && !errors.Is(failed, context.DeadlineExceeded) {
		cancel()
		d := <-done
		if d.err != nil {
			return nil, failed
		}
		return d.client, nil
	}
	return c.result(ctx, <-done)
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

type dialResult struct {
	client client.Client
	err    error
}

func (c Connection) dial(ctx context.Context) dialResult {
	cl, err := client.DialContext(ctx, c.Options)
	if err != nil {
		return dialResult{err: err}
	}
	req := &workflowservice.DescribeNamespaceRequest{Namespace: c.Options.Namespace}
	if _, err := cl.WorkflowService().DescribeNamespace(ctx, req); err != nil {
		cl.Close()
		return dialResult{err: err}
	}
	return dialResult{client: cl}
}

func (c Connection) result(ctx context.Context, d dialResult) (client.Client, error) {
	if d.err == nil {
		return d.client, nil
	}
	return nil, c.explain(ctx, d.err)
}

// Operator returns an operator of this host that uses a dialed client. A non-empty address is the one that was dialed
// instead of the configured one.
func (c Connection) Operator(
	cl client.Client, address string, settings config.Settings, secrets *redact.Redactor,
) (operations.Operator, error) {
	host, err := HostID(settings.StateDir)
	if err != nil {
		return operations.Operator{}, err
	}
	if address == "" {
		address = c.Options.HostPort
	}
	return operations.Operator{
		Client: cl, Address: address, Namespace: c.Options.Namespace, Settings: settings, Host: host,
		Build: build.Version(), By: User(), Redact: secrets, Converter: c.Options.DataConverter, Embedded: !c.Explicit,
	}, nil
}

// User returns the name of the user who runs this program, for the journal.
func User() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}

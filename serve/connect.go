package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"github.com/passbook-run/passbook/codec"
	"github.com/passbook-run/passbook/config"
)

const (
	patience = 5 * time.Second        // the most that a connection may take
	promptly = 300 * time.Millisecond // a connection that takes longer is looked into while it goes on
)

// Connection is what envconfig found, as the temporal CLI would.
type Connection struct {
	Options  client.Options
	Explicit bool // an address was given, so no embedded server is wanted
}

// FindConnection reads TEMPORAL_* variables and the profile. What goes over the connection is encrypted as the settings say.
func FindConnection(settings config.Settings) (Connection, error) {
	crypt, err := codec.Load(settings.Codec, os.Getenv)
	if err != nil {
		return Connection{}, err
	}
	opts, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return Connection{}, fmt.Errorf("connection to Temporal (TEMPORAL_* variables, profile): %w", err)
	}
	opts.DataConverter, opts.FailureConverter = crypt.Converter(), crypt.Failures()
	c := Connection{Options: opts, Explicit: opts.HostPort != ""}
	if c.Options.Namespace == "" {
		c.Options.Namespace = client.DefaultNamespace
	}
	return c, nil
}

// Dial connects, and sees that the namespace is there. address replaces the found one where it is not empty. It takes at most five seconds; the
// error is a [ConnectError], which says how far the connection came.
func (c Connection) Dial(ctx context.Context, address string, logger *slog.Logger) (client.Client, error) {
	if address != "" {
		c.Options.HostPort = address
	}
	c.Options.Logger = log.NewStructuredLogger(logger)
	if onThisHost(c.Options.HostPort) {
		c.Options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{} // costs both sides time, and no wire is spared
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	done := make(chan dialled, 1)
	go func() { done <- c.dial(ctx) }()
	select {
	case d := <-done:
		return c.settle(ctx, d)
	case <-time.After(promptly):
	}
	if closed := c.walk(ctx); closed != nil { // the SDK would go on trying
		cancel()
		d := <-done
		if d.err != nil {
			return nil, closed
		}
		return d.client, nil
	}
	return c.settle(ctx, <-done)
}

// onThisHost says that an address is one of the loopback.
func onThisHost(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// dialled is how an attempt ended.
type dialled struct {
	client client.Client
	err    error
}

func (c Connection) dial(ctx context.Context) dialled {
	cl, err := client.DialContext(ctx, c.Options)
	if err != nil {
		return dialled{err: err}
	}
	if _, err := cl.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: c.Options.Namespace}); err != nil {
		cl.Close()
		return dialled{err: err}
	}
	return dialled{client: cl}
}

func (c Connection) settle(ctx context.Context, d dialled) (client.Client, error) {
	if d.err == nil {
		return d.client, nil
	}
	return nil, c.explain(ctx, d.err)
}

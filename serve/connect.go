package serve

import (
	"context"
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
)

// Connection is what envconfig found, as the temporal CLI would.
type Connection struct {
	Options  client.Options
	Explicit bool // an address was given, so no embedded server is wanted
}

// FindConnection reads TEMPORAL_* variables and the profile.
func FindConnection() (Connection, error) {
	opts, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return Connection{}, fmt.Errorf("connection to Temporal (TEMPORAL_* variables, profile): %w", err)
	}
	c := Connection{Options: opts, Explicit: opts.HostPort != ""}
	if c.Options.Namespace == "" {
		c.Options.Namespace = client.DefaultNamespace
	}
	return c, nil
}

// Dial connects. address replaces the found one where it is not empty.
func (c Connection) Dial(ctx context.Context, address string, logger *slog.Logger) (client.Client, error) {
	opts := c.Options
	if address != "" {
		opts.HostPort = address
	}
	opts.Logger = log.NewStructuredLogger(logger)
	cl, err := client.DialContext(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal at %s, namespace %s: %w", opts.HostPort, opts.Namespace, err)
	}
	return cl, nil
}

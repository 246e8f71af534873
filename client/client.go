// Package client starts and controls runs of pipelines on Temporal. It does what the starter does with a live run.
//
// [Dial] connects to the server that the starter of this host uses. A run needs a worker of this host: the program
// worker, or package workerhost. The package starts neither a server nor a worker.
//
// A run is named by its directory, its id, or a unique beginning of its id. Every method can be repeated: it changes
// nothing that it has already changed. The errors that a program can handle are types of this package,
// [run.ConflictError] and [pipeline.Problems]; test for them with [errors.As].
//
// Package rundir reads run directories without a server.
package client

import (
	"context"
	"log/slog"

	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/rundir"
)

// Options configure a client. The zero value connects as the starter does.
type Options struct {
	// Settings of this host. Nil reads the settings file and the PASSBOOK_* variables, as [config.Load] does.
	Settings *config.Settings

	// Address of the Temporal server as HOST:PORT. If it is empty, TEMPORAL_ADDRESS or the profile in temporal.toml
	// applies; without these, the embedded server that runs on this host.
	Address string

	// Namespace of the runs. If it is empty, TEMPORAL_NAMESPACE, the profile or "default" applies.
	Namespace string

	// DataConverter encodes payloads. Nil encrypts them as the settings say. The workers of the namespace need the
	// same one.
	DataConverter converter.DataConverter

	// FailureConverter encodes failures. Nil encrypts them as the settings say.
	FailureConverter converter.FailureConverter

	// User is recorded as the author of every operation. Empty: the user of this process.
	User string

	// Environ has the form of [os.Environ]. The variables that the settings and the definition allow are passed to
	// the agents of runs that this client starts or resumes. Nil: the environment of this process.
	Environ []string

	// Logger receives the log of the connection. Nil discards it.
	Logger *slog.Logger
}

// Client starts and controls runs. It is safe for concurrent use.
type Client struct {
	op      operations.Operator
	release func() error
}

// Dial connects to Temporal. It returns within five seconds once the settings are read, or when ctx ends. Close the
// client after use: while it is open, the embedded server and its worker keep running.
//
// Errors: [*ConnectError]; errors of the settings.
func Dial(ctx context.Context, o Options) (*Client, error) {
	op, release, err := host.Open(ctx, host.Target{
		Settings: o.Settings, Address: o.Address, Namespace: o.Namespace,
		Converter: o.DataConverter, Failures: o.FailureConverter, Logger: o.Logger,
	})
	if err != nil {
		return nil, public(err)
	}
	if o.User != "" {
		op.By = o.User
	}
	if o.Environ != nil {
		op.Environ = o.Environ
	}
	return &Client{op: op, release: release}, nil
}

// Close closes the connection. Runs continue.
func (c *Client) Close() error { return c.release() }

func (c *Client) find(name string) (rundir.Dir, error) {
	d, err := operations.Find(c.op.Settings.StateDir, name, false)
	return d, err
}

// Package workerhost hosts a worker in a Go program, as the program worker does.
//
// A worker polls Temporal for the work of one host: it writes run directories and calls agents. A
// program calls [RunChild] first in main, because a worker starts its own program once for each call:
//
//	func main() {
//		if code, ok := workerhost.RunChild(os.Args[1:]); ok {
//			os.Exit(code)
//		}
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//		defer stop()
//		if err := workerhost.Run(ctx, workerhost.Options{}); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// Agents outlive the worker: when it stops or crashes, the next worker of the host joins its running calls. The package
// starts no Temporal server; package client starts and controls runs.
package workerhost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/agent/scripted"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// Options configure a worker. The zero value polls the server that the starter of this host uses.
type Options struct {
	// Settings of this host. Nil reads the settings file and the PASSBOOK_* variables, as [config.Load] does.
	Settings *config.Settings

	// Address of the Temporal server as HOST:PORT. If it is empty, TEMPORAL_ADDRESS or the profile in temporal.toml
	// applies; without these, the embedded server that runs on this host.
	Address string

	// Namespace to poll. If it is empty, TEMPORAL_NAMESPACE, the profile or "default" applies.
	Namespace string

	// DataConverter encodes payloads. Nil encrypts them as the settings say. Every client of the namespace needs the
	// same one.
	DataConverter converter.DataConverter

	// FailureConverter encodes failures. Nil encrypts them as the settings say.
	FailureConverter converter.FailureConverter

	// Logger receives the log of the connection. Nil discards it.
	Logger *slog.Logger

	// Ready is called once, when the worker polls. An error stops the worker and is returned by [Run].
	Ready func() error

	// Abort ends the calls that a stopping worker waits for, when it is closed. It has no effect unless the setting
	// drain is positive. Nil waits until drain has passed.
	Abort <-chan struct{}

	// Progress receives one line of text when a stopping worker starts to wait for calls. Nil discards it.
	Progress func(line string)
}

// ErrChild is returned by [Run] in a process that a worker started for a call: main did not call [RunChild].
var ErrChild = errors.New("a worker started this process for a call: call workerhost.RunChild first in main")

// Run connects, polls until ctx ends, and returns nil. It then leaves running calls to the next worker of this host,
// which joins them; with the setting drain it first waits that long for them to end.
//
// Errors: [ErrChild]; errors of the settings; an error with the cause and the fix if the server is unreachable or
// refuses the connection.
func Run(ctx context.Context, o Options) error {
	if isChild(os.Args[1:]) {
		return ErrChild
	}
	err := host.ServeWorker(ctx, host.Target{
		Settings: o.Settings, Address: o.Address, Namespace: o.Namespace,
		Converter: o.DataConverter, Failures: o.FailureConverter, Logger: o.Logger,
	}, host.WorkerConfig{Ready: o.Ready, Abort: o.Abort, Progress: o.Progress})
	if err != nil {
		return fmt.Errorf("host worker: %w", err)
	}
	return nil
}

// RunChild runs the call for which a worker started this process, and returns its exit code. ok is false in every other
// process; RunChild then does nothing. args are the program's arguments without its name.
func RunChild(args []string) (code int, ok bool) {
	if !isChild(args) {
		return 0, false
	}
	if args[0] == scripted.Verb {
		return scripted.Main(os.Stdin, os.Stdout, os.Stderr, os.Getenv), true
	}
	return supervisor.Main(args[1:]), true
}

func isChild(args []string) bool {
	return len(args) > 0 && (args[0] == scripted.Verb || args[0] == supervisor.Verb)
}

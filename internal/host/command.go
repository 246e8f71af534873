package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/agent/scripted"
	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/redact"
)

// CommandEnv is what the command of a worker needs from its program.
type CommandEnv struct {
	Settings config.Settings
	Secrets  *redact.Redactor
	Stderr   io.Writer
	Keep     func(ctx context.Context) // restarts the keeper of a background worker until ctx ends
}

// Command returns the command that runs a worker. It calls env when it runs, after the flags were parsed.
func Command(env func() CommandEnv) *cobra.Command {
	var background bool
	var key string
	cmd := &cobra.Command{
		Use: "worker", Short: "Run a worker in the foreground", Args: cobra.NoArgs,
		Long: `Run a worker against the Temporal server of TEMPORAL_ADDRESS or the profile, or against the embedded server of
this machine. SIGTERM and SIGINT stop it within two seconds. Running calls continue, and the next worker of this host
joins them. With PASSBOOK_DRAIN (such as 10m, in containers, where calls end with the worker) it waits for them first;
a second signal ends them at once.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, now, stop := stopSignals(cmd.Context())
			defer stop()
			return env().serve(ctx, now, background, key)
		},
	}
	cmd.Flags().BoolVar(&background, "background", false, "stop when there is no work and no starter is attached")
	cmd.Flags().StringVar(&key, "key", "", "how the starter identifies the worker")
	for _, f := range []string{"background", "key"} {
		if err := cmd.Flags().MarkHidden(f); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

// stopSignals returns a context that the first SIGINT or SIGTERM ends, and a channel that the second one closes.
func stopSignals(ctx context.Context) (first context.Context, second <-chan struct{}, stop func()) {
	signals, now := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	first, cancel := context.WithCancel(ctx)
	go func() {
		<-signals
		cancel()
		<-signals
		close(now)
	}()
	return first, now, func() { signal.Stop(signals); cancel() }
}

// serve runs the worker. One in the foreground starts the embedded server.
func (e CommandEnv) serve(ctx context.Context, now <-chan struct{}, background bool, key string) error {
	log := slog.New(slog.NewTextHandler(e.Secrets.Writer(e.Stderr), &slog.HandlerOptions{Level: slog.LevelWarn}))
	t := Target{Settings: &e.Settings, Secrets: e.Secrets, Logger: log, Detached: true}
	progress := func(line string) { fmt.Fprintln(e.Stderr, line) }
	if background {
		go e.Keep(ctx)
	} else {
		t.Ensure = func(ctx context.Context) (Server, error) {
			return EnsureServer(ctx, EmbeddedServer(e.Settings), progress)
		}
	}
	for _, name := range e.Secrets.Short() {
		log.Warn("the value of this variable is too short to be redacted", "variable", name)
	}
	return ServeWorker(ctx, t, WorkerConfig{Background: background, Progress: progress, Abort: now,
		Ready: func() error { return AnnounceReady(e.Settings.StateDir, key, time.Now()) }})
}

// ServeWorker connects to a target and runs a worker of this program until ctx ends.
func ServeWorker(ctx context.Context, t Target, c WorkerConfig) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	settings, err := t.withDefaults()
	if err != nil {
		return err
	}
	if c.Metrics, err = OpenMetrics(settings); err != nil {
		return err
	}
	t.Role, t.Metrics, c.Scripted = certs.Worker, c.Metrics.Handler(), []string{self, scripted.Verb}
	var release func() error
	if c.Operator, release, err = Open(ctx, t); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	worker.SetBinaryChecksum(build.ID(self)) // otherwise the SDK reads and hashes the whole program at each start
	return RunWorker(ctx, c)
}

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/agent/scripted"
	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/redact"
	"github.com/passbook-run/passbook/workflows"
)

// CommandEnv is what the command needs from its program.
type CommandEnv struct {
	Settings config.Settings
	Secrets  *redact.Redactor
	Stderr   io.Writer
	// Keep restarts the keeper of a background worker until ctx ends. It is nil in programs without a keeper.
	Keep func(ctx context.Context)
}

// New returns the command. It calls env when it runs, after the flags were parsed.
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

func (e CommandEnv) progress(line string) { fmt.Fprintln(e.Stderr, line) }

func (e CommandEnv) serve(ctx context.Context, now <-chan struct{}, background bool, key string) error {
	conn, err := FindConnection(e.Settings)
	if err != nil {
		return err
	}
	if err := OpenState(ctx, e.Settings.StateDir); err != nil {
		return err
	}
	conn.Role = certs.Worker
	metrics, ofSDK, err := OpenMetrics(e.Settings)
	if err != nil {
		return err
	}
	conn.Options.MetricsHandler = ofSDK
	address, err := e.localAddress(ctx, conn, background)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(e.Secrets.Writer(e.Stderr), &slog.HandlerOptions{Level: slog.LevelWarn}))
	cl, err := dial(ctx, conn, address, log)
	if err != nil {
		return err
	}
	defer cl.Close()
	if !conn.Explicit {
		go KeepCerts(ctx, e.Settings.StateDir, func(err error) { log.Error("renew certificates", "error", err) })
	}
	listed := true
	if err := EnsureAttributes(ctx, cl, conn.Options.Namespace); err != nil {
		listed = false
		log.Warn("runs cannot be listed by status", "error", err)
	}
	for _, name := range e.Secrets.Short() {
		log.Warn("the value of this variable is too short to be redacted", "variable", name)
	}
	op, err := conn.Operator(cl, address, e.Settings, e.Secrets)
	if err != nil {
		return err
	}
	o, err := e.options(op)
	if err != nil {
		return err
	}
	worker.SetBinaryChecksum(build.ID(o.Scripted[0])) // otherwise the SDK reads and hashes the whole program at each start
	o.Abort, o.Operator.Attributes, o.Metrics = now, listed, metrics
	o.Ready = func() error { return AnnounceReady(e.Settings.StateDir, key, time.Now()) }
	if background {
		o.Idle = IdleStop(cl, conn.Options.Namespace, e.Settings.StateDir, e.Settings.Idle)
		if e.Keep != nil {
			go e.Keep(ctx)
		}
	}
	return RunWorker(ctx, o)
}

// slowServer is how long a worker that starts waits for a server that answers too slowly: on a busy machine it may.
const slowServer = time.Minute

// dial connects, and tries again while the server is only slow.
func dial(ctx context.Context, conn Connection, address string, log *slog.Logger) (client.Client, error) {
	for begun := time.Now(); ; {
		cl, err := conn.Dial(ctx, address, log)
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || time.Since(begun) > slowServer {
			return cl, err
		}
		log.Warn("the server answers slowly, the worker tries again", "error", err)
	}
}

func (e CommandEnv) options(op operations.Operator) (WorkerConfig, error) {
	self, err := os.Executable()
	return WorkerConfig{
		Settings: e.Settings, Redact: e.Secrets, Converter: op.Converter, Client: op.Client, Host: op.Host,
		Operator: op,
		Scripted: []string{self, scripted.Verb}, Progress: e.progress,
	}, err
}

// localAddress returns the address of the embedded server, or "" if the settings name another one. A worker in the
// foreground starts the embedded server.
func (e CommandEnv) localAddress(ctx context.Context, conn Connection, background bool) (string, error) {
	if conn.Explicit {
		return "", nil
	}
	if !background {
		srv, err := EnsureServer(ctx, EmbeddedServer(e.Settings), e.progress)
		return srv.Address, err
	}
	st, err := Read(e.Settings.StateDir)
	if err != nil || st.Server == nil {
		return client.DefaultHostPort, err
	}
	return st.Server.Address, nil
}

// ServerOptions returns how the embedded server is started with these settings.
func EmbeddedServer(s config.Settings) ServerOptions {
	attributes := map[string]string{}
	for name, kind := range workflows.SearchAttributes() {
		attributes[name] = kind.String()
	}
	return ServerOptions{
		StateDir: s.StateDir, Binary: s.Server, Namespace: client.DefaultNamespace,
		SearchAttributes: attributes, Codec: s.Codec.Endpoint, CodecToken: codecToken(s),
	}
}

// codecToken names the token with which the Web UI asks the codec endpoint; empty: there is no endpoint.
func codecToken(s config.Settings) string {
	if s.Codec.Endpoint == "" || s.Codec.Token != "" {
		return s.Codec.Token
	}
	return "file:" + CodecTokenFile(s.StateDir)
}

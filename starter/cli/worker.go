package cli

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/local"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/serve"
)

// worker is the worker process: what the program `worker` runs, and what the starter starts in the background.
func (a *app) worker() *cobra.Command {
	var background bool
	var key string
	cmd := &cobra.Command{
		Use: "worker", Short: "Run a worker (in the foreground)", Args: cobra.NoArgs,
		Long: `Run a worker against the Temporal server of TEMPORAL_ADDRESS or the profile, or against the embedded server of this machine.
SIGTERM and SIGINT stop it within two seconds. Running calls go on, and the next worker of this host joins them. With PASSBOOK_DRAIN (such as 10m, in containers,
where calls end with the worker) it waits for them first; a second signal ends them at once.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, now, stop := stopSignals(cmd.Context())
			defer stop()
			return a.serve(ctx, now, background, key)
		},
	}
	cmd.Flags().BoolVar(&background, "background", false, "stop when there is no work and nobody is attached")
	cmd.Flags().StringVar(&key, "key", "", "what the starter knows the worker by")
	hide(cmd, "background", "key")
	return cmd
}

// stopSignals gives a context that ends with the first signal to stop, and a channel that is closed by the second.
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

func hide(cmd *cobra.Command, flags ...string) {
	for _, f := range flags {
		if err := cmd.Flags().MarkHidden(f); err != nil {
			panic(err) // the flag was defined just before
		}
	}
}

func (a *app) serve(ctx context.Context, now <-chan struct{}, background bool, key string) error {
	conn, err := serve.FindConnection(a.settings)
	if err != nil {
		return err
	}
	host, err := local.HostID(a.settings.StateDir)
	if err != nil {
		return err
	}
	address, err := a.localAddress(ctx, conn, background)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(a.secrets.Writer(a.err), &slog.HandlerOptions{Level: slog.LevelWarn}))
	cl, err := conn.Dial(ctx, address, log)
	if err != nil {
		return err
	}
	defer cl.Close()
	listed := true
	if err := serve.EnsureAttributes(ctx, cl, conn.Options.Namespace); err != nil {
		listed = false
		log.Warn("runs cannot be listed by status", "error", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, name := range a.secrets.Short() {
		log.Warn("the value of this variable is too short to be hidden", "variable", name)
	}
	o := serve.Options{
		Settings: a.settings, Redact: a.secrets, Converter: conn.Options.DataConverter, Client: cl, Host: host, Scripted: []string{self, ScriptedVerb},
		Now: now, Say: a.progress,
		Ready: func() error { return local.AnnounceReady(a.settings.StateDir, key, time.Now()) },
	}
	o.Operator = operate.Operator{
		Client: cl, Address: cmp.Or(address, conn.Options.HostPort), Namespace: conn.Options.Namespace, Settings: a.settings, Host: host, Build: version(), By: who(), Embedded: !conn.Explicit, Redact: a.secrets,
		Converter: conn.Options.DataConverter, Attributes: listed,
	}
	if background {
		o.Idle = serve.IdleStop(cl, conn.Options.Namespace, a.settings.StateDir, a.settings.Idle)
		go a.keepKeeper(ctx)
	}
	return serve.Run(ctx, o)
}

// localAddress is the embedded server's, where no other was named; a worker in the foreground starts it.
func (a *app) localAddress(ctx context.Context, conn serve.Connection, background bool) (string, error) {
	if conn.Explicit {
		return "", nil
	}
	if !background {
		srv, err := a.ensureServer(ctx)
		return srv.Address, err
	}
	st, err := local.Read(a.settings.StateDir)
	if err != nil || st.Server == nil {
		return client.DefaultHostPort, err
	}
	return st.Server.Address, nil
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/host"
)

// keepVerb is the hidden verb below server that runs the keeper.
const keepVerb = "keep"

func (a *app) serverKeep() *cobra.Command {
	cmd := &cobra.Command{
		Use: keepVerb, Short: "Restart server and worker after a crash", Args: cobra.NoArgs, Hidden: true,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return host.Keep(ctx, host.KeepOptions{
			StateDir: a.settings.StateDir, Server: a.serverAgain, Worker: a.workerAgain,
			Report: func(line string) {
				fmt.Fprintf(a.err, "%s %s\n", time.Now().UTC().Format(time.RFC3339), a.secrets.Text(line))
			},
		})
	}
	return cmd
}

// serverAgain restarts the server. A worker that is connected to another address is replaced: the old port may be in
// use.
func (a *app) serverAgain(ctx context.Context) error {
	o := host.EmbeddedServer(a.settings)
	o.Again = true
	srv, err := host.EnsureServer(ctx, o, a.progress)
	if err != nil || srv.Process.PID == 0 {
		return a.hidden(err)
	}
	st, err := host.Read(a.settings.StateDir)
	if err != nil || st.Worker == nil {
		return err
	}
	return a.hidden(a.ensureWorker(ctx, srv, func() bool { return true }))
}

func (a *app) workerAgain(ctx context.Context) error {
	st, err := host.Read(a.settings.StateDir)
	if err != nil || st.Server == nil {
		return err // the server comes first
	}
	o, err := a.workerOptions(*st.Server)
	if err != nil {
		return err
	}
	o.Again = true
	_, err = host.EnsureWorker(ctx, o, a.progress)
	return a.hidden(err)
}

// hidden returns an error without secrets, since the keeper records it.
func (a *app) hidden(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(a.secrets.Text(err.Error()))
}

// ensureKeeper starts the keeper if none runs.
func (a *app) ensureKeeper(ctx context.Context, o host.KeeperOptions) error {
	if !a.settings.Keeper {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o.StateDir, o.Exec, o.Args = a.settings.StateDir, self, []string{"server", keepVerb}
	return host.EnsureKeeper(ctx, o)
}

// ownKeeper replaces a keeper of another build or with other settings. An attached terminal does not: two terminals of
// different builds would keep replacing the keeper.
func (a *app) ownKeeper(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return a.ensureKeeper(ctx, host.KeeperOptions{Key: settingsID(a.settings) + " " + build.ID(self)})
}

// warnNoKeeper warns once that there is no keeper; the run does not need one.
func (a *app) warnNoKeeper(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	a.noKeeper.Do(func() {
		fmt.Fprintln(a.err, "Warning: nothing restarts the worker and the server if they crash:",
			a.secrets.Text(err.Error()))
	})
}

// keepKeeper restarts a keeper that was killed. The worker calls it, so that each of the two restarts the other.
func (a *app) keepKeeper(ctx context.Context) {
	failed := ""
	err := api.Poll(ctx, 2*time.Second, func(time.Time) (bool, error) {
		if err := a.ensureKeeper(ctx, host.KeeperOptions{Again: true}); err != nil && err.Error() != failed {
			failed = err.Error()
			fmt.Fprintln(a.err, "The keeper cannot be restarted:", a.secrets.Text(failed))
		}
		return false, nil
	})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(a.err, "The keeper is no longer watched:", a.secrets.Text(err.Error()))
	}
}

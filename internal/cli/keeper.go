package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/connect"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/local/unit"
	"github.com/passbook-run/passbook/internal/workercmd"
)

// keepVerb is the hidden verb below server that runs the keeper.
const keepVerb = "keep"

func (a *app) serverKeep() *cobra.Command {
	var managed bool
	cmd := &cobra.Command{
		Use: keepVerb, Short: "Restart server and worker after a crash", Args: cobra.NoArgs, Hidden: true,
	}
	cmd.Flags().BoolVar(&managed, "managed", false, "started by a service manager")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		key, err := a.keeperKey()
		if err != nil {
			return err
		}
		return local.Keep(ctx, local.KeepOptions{
			StateDir: a.settings.StateDir, Key: key, Managed: managed, Server: a.serverAgain, Worker: a.workerAgain,
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
	o := workercmd.ServerOptions(a.settings)
	o.Again = true
	srv, err := local.Ensure(ctx, o, a.progress)
	if err != nil || srv.Process.PID == 0 {
		return a.hidden(err)
	}
	st, err := local.Read(a.settings.StateDir)
	if err != nil || st.Worker == nil {
		return err
	}
	return a.hidden(a.ensureWorker(ctx, srv, func() bool { return true }))
}

func (a *app) workerAgain(ctx context.Context) error {
	st, err := local.Read(a.settings.StateDir)
	if err != nil || st.Server == nil {
		return err // the server comes first
	}
	o, err := a.workerOptions(*st.Server)
	if err != nil {
		return err
	}
	o.Again = true
	_, err = local.EnsureWorker(ctx, o, a.progress)
	return a.hidden(err)
}

// hidden returns an error without secrets, since the keeper records it.
func (a *app) hidden(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(a.secrets.Text(err.Error()))
}

func (a *app) keeperKey() (string, error) {
	self, err := os.Executable()
	return settingsID(a.settings) + " " + build.ID(self), err
}

// ensureKeeper starts the keeper if none runs, with the service manager where the service is installed.
func (a *app) ensureKeeper(ctx context.Context, o local.KeeperOptions) error {
	if !a.settings.Keeper {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o.StateDir, o.Exec, o.Args = a.settings.StateDir, self, []string{"server", keepVerb}
	if m, err := manager(); err == nil {
		if s := (unit.Service{StateDir: a.settings.StateDir}); m.Installed(s) {
			o.Manager = func(ctx context.Context) error { return m.Start(ctx, s) }
		}
	}
	_, err = local.EnsureKeeper(ctx, o)
	return err
}

// ownKeeper replaces a keeper of another build or with other settings. An attached terminal does not: two terminals of
// different builds would keep replacing the keeper.
func (a *app) ownKeeper(ctx context.Context) error {
	key, err := a.keeperKey()
	if err != nil {
		return err
	}
	return a.ensureKeeper(ctx, local.KeeperOptions{Key: key})
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
		if err := a.ensureKeeper(ctx, local.KeeperOptions{Again: true}); err != nil && err.Error() != failed {
			failed = err.Error()
			fmt.Fprintln(a.err, "The keeper cannot be restarted:", a.secrets.Text(failed))
		}
		return false, nil
	})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(a.err, "The keeper is no longer watched:", a.secrets.Text(err.Error()))
	}
}

// manager returns the service manager of this user.
func manager() (unit.Manager, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return unit.Manager{}, err
	}
	return unit.Of(runtime.GOOS, home, os.Getenv("XDG_CONFIG_HOME"), os.Getuid())
}

func (a *app) serverInstall() *cobra.Command {
	return &cobra.Command{
		Use: "install", Short: "Install the keeper as a system service", Args: cobra.NoArgs,
		Long: `Install a systemd user unit or a launchd agent for this state directory. It runs the keeper, which restarts
the worker and the embedded server after a crash, and starts them after a reboot if runs are open. Without it, server
start and every start of a run start the keeper themselves.

The service gets PATH and the PASSBOOK_ settings of this terminal. After you change them or move the program, run the
command again.`,
		RunE: a.install,
	}
}

func (a *app) install(cmd *cobra.Command, _ []string) error {
	ctx := cmd.Context()
	conn, err := connect.Find(a.settings)
	if err != nil {
		return err
	}
	if conn.Explicit {
		return asUsage(fmt.Errorf("install the service: TEMPORAL_ADDRESS or a profile names the server %s, which this "+
			"machine does not restart; unset it, or see docs/cluster.md for its workers", conn.Options.HostPort))
	}
	if _, err := local.HostID(a.settings.StateDir); err != nil { // creates the state directory
		return err
	}
	if err := local.OwnState(a.settings.StateDir); err != nil {
		return asUsage(err)
	}
	m, err := manager()
	if err != nil {
		return err
	}
	s, withheld, err := a.service(cmd)
	if err != nil {
		return err
	}
	if _, err := local.StopKeeper(ctx, a.settings.StateDir, 10*time.Second); err != nil { // replaced by the service's
		return err
	}
	log := filepath.Join(a.settings.StateDir, "keeper", "keeper.log")
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		return err
	}
	file, err := m.Install(ctx, s, log)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "Installed %s\n", file)
	if len(withheld) > 0 {
		fmt.Fprintf(a.out, "Not written there, because they hold secrets: %s. Set them in the settings file.\n",
			strings.Join(withheld, ", "))
	}
	if runtime.GOOS == "linux" {
		fmt.Fprintln(a.out, "To keep runs alive after you log out: loginctl enable-linger")
	}
	return nil
}

// service returns the service that runs the keeper with the settings of this terminal.
func (a *app) service(cmd *cobra.Command) (s unit.Service, withheld []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return s, nil, err
	}
	env, withheld, err := config.Environment(cmd.Flags())
	if err != nil {
		return s, nil, err
	}
	env = slices.DeleteFunc(env, func(pair string) bool { return strings.HasPrefix(pair, "PASSBOOK_STATE_DIR=") })
	env = append(env, "PASSBOOK_STATE_DIR="+a.settings.StateDir)
	if path, named := config.File(cmd.Flags()); named {
		if path, err = filepath.Abs(path); err != nil {
			return s, nil, err
		}
		env = append(env, "PASSBOOK_SETTINGS="+path)
	}
	for _, name := range []string{"PATH", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	args := []string{"server", keepVerb, "--managed"}
	return unit.Service{StateDir: a.settings.StateDir, Exec: self, Args: args, Env: env}, withheld, nil
}

func (a *app) serverUninstall() *cobra.Command {
	return &cobra.Command{
		Use: "uninstall", Short: "Remove the installed service; server and worker keep running", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := manager()
			if err != nil {
				return err
			}
			s := unit.Service{StateDir: a.settings.StateDir}
			was, err := m.Uninstall(cmd.Context(), s)
			if err != nil {
				return err
			}
			if !was {
				fmt.Fprintln(a.out, "Nothing was installed.")
				return nil
			}
			fmt.Fprintf(a.out, "Removed %s\n", m.File(s))
			st, err := local.Read(a.settings.StateDir)
			if err != nil || st.Server == nil {
				return err
			}
			return a.ensureKeeper(cmd.Context(), local.KeeperOptions{}) // for the processes that still run
		},
	}
}

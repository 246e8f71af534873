package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/supervisor"
)

func (a *app) server() *cobra.Command {
	cmd := within(&cobra.Command{Use: "server", Short: "Manage the embedded Temporal server and the background worker"})
	cmd.AddCommand(
		&cobra.Command{Use: "start", Short: "Start server, worker and keeper", Args: cobra.NoArgs, RunE: a.serverStart,
			Long: `Start the embedded server, the background worker, and the keeper that restarts them after a crash. They stop
when no run is active and no terminal is attached for the time of the setting idle (1 minute).`},
		a.serverStop(),
		&cobra.Command{Use: "build", Short: "Build the server, without starting it", Args: cobra.NoArgs,
			RunE: a.serverBuild},
		a.serverStatus(), a.serverUI(), a.serverEnv(), a.serverKeep(),
	)
	return cmd
}

func (a *app) serverStart(cmd *cobra.Command, _ []string) error {
	s, err := a.connect(cmd.Context(), true)
	if err != nil {
		return err
	}
	defer s.Close()
	st, err := host.Read(a.settings.StateDir)
	if err != nil {
		return err
	}
	a.printServer(st)
	return nil
}

func (a *app) serverUI() *cobra.Command {
	return &cobra.Command{
		Use: "ui", Short: "Print a one-time link that logs a browser into the Web UI", Args: cobra.NoArgs,
		Long: fmt.Sprintf(`Print a link to the Web UI of the embedded server. It can be opened once, within %.0f hours.
The browser stays logged in until the server ends.`, host.LinkLife.Hours()),
		RunE: func(*cobra.Command, []string) error {
			st, err := host.Read(a.settings.StateDir)
			if err != nil {
				return err
			}
			if st.Server == nil {
				return fmt.Errorf("open the Web UI: the embedded server does not run; start it: %s server start", program())
			}
			link, err := st.Server.LoginLink("")
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, link)
			return nil
		},
	}
}

func (a *app) serverBuild(cmd *cobra.Command, _ []string) error {
	o := host.ServerOptions{StateDir: a.settings.StateDir, Binary: a.settings.Server}
	path, err := host.BuildServer(cmd.Context(), o, a.progress)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.out, "Temporal server:", path)
	return nil
}

func (a *app) serverStop() *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use: "stop", Short: "Stop keeper, worker and server", Args: cobra.NoArgs,
		Long: `Stop keeper, worker and server. Open runs continue after the next start. Running calls keep running: the next
worker joins them and uses their answers. With --now they are ended, and repeated when their runs continue.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.stop(cmd.Context(), now) },
	}
	cmd.Flags().BoolVar(&now, "now", false, "also end the running calls")
	return cmd
}

func (a *app) stop(ctx context.Context, now bool) error {
	grace := 20 * time.Second
	if !now {
		grace += a.settings.Drain
	}
	was, err := host.Stop(ctx, a.settings.StateDir, grace)
	if err != nil {
		return err
	}
	ended, calls := 0, ""
	if now {
		if ended, err = supervisor.StopAll(ctx, a.settings.Scratch(),
			"ended by `starter server stop --now`"); err != nil {
			return fmt.Errorf("end the running calls: %w", err)
		}
		if ended > 0 {
			calls = fmt.Sprintf(" %s ended.", ofCalls(ended))
		}
	} else if living, err := supervisor.Running(a.settings.Scratch()); err == nil && len(living) > 0 {
		them := "them"
		if len(living) == 1 {
			them = "it"
		}
		calls = fmt.Sprintf(" %s still running; the next worker joins %s. To end %s: %s server stop --now",
			ofCalls(len(living)), them, them, program())
	}
	if was.Server == nil && was.Worker == nil && was.Keeper == nil && ended == 0 {
		fmt.Fprintln(a.out, "Nothing was running."+calls)
		return nil
	}
	fmt.Fprintln(a.out, "Stopped."+calls)
	return nil
}

func ofCalls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}

func (a *app) serverStatus() *cobra.Command {
	cmd := &cobra.Command{Use: "status", Short: "Show server, worker and keeper of this machine", Args: cobra.NoArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		st, err := host.Read(a.settings.StateDir)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.json(processes{st.Server, st.Worker, st.Keeper})
		}
		a.printServer(st)
		return nil
	}
	return cmd
}

// processes is the output of `server status --json`; null: not running.
type processes struct {
	Server *host.Server `json:"server"`
	Worker *host.Worker `json:"worker"`
	Keeper *host.Keeper `json:"keeper"`
}

func (a *app) printServer(st host.Status) {
	if st.Server == nil {
		fmt.Fprintf(a.out, "Server    not running (it is started when it is needed, or with `%s server start`)\n",
			program())
	} else {
		fmt.Fprintf(a.out, "Server    %s, pid %d, since %s\nWeb UI    %s\nDatabase  %s\nLog       %s\n",
			st.Server.Address, st.Server.Process.PID,
			st.Server.Started.Local().Format(time.DateTime), st.Server.UI+fmt.Sprintf(" (to log in: %s server ui)", program()), st.Server.Database,
			st.Server.Log)
	}
	if st.Worker == nil {
		fmt.Fprintln(a.out, "Worker    not running")
	} else {
		fmt.Fprintf(a.out, "Worker    pid %d, since %s\nLog       %s\n",
			st.Worker.Process.PID, st.Worker.Started.Local().Format(time.DateTime), st.Worker.Log)
	}
	a.printKeeper(st.Keeper)
}

// printKeeper prints what the keeper restarted, and what restarts the keeper.
func (a *app) printKeeper(k *host.Keeper) {
	if k == nil {
		fmt.Fprintln(a.out, "Keeper    not running: nothing restarts server and worker if they crash")
		return
	}
	fmt.Fprintf(a.out, "Keeper    pid %d, since %s\n", k.Process.PID, k.Started.Local().Format(time.DateTime))
	for _, part := range []struct {
		name string
		host.Restarts
	}{{"server", k.Server}, {"worker", k.Worker}} {
		text := part.String()
		if text == "" {
			continue
		}
		if part.Failing() {
			text += ". Fix the cause; the keeper tries again every minute"
		}
		fmt.Fprintf(a.out, "          %s %s\n", part.name, a.secrets.Text(text))
	}
}

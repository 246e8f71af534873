package cli

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) watch() *cobra.Command {
	var dir string
	var asJSON bool
	cmd := a.target(&cobra.Command{
		Use: "watch [RUN]", Short: "Watch a run live, and answer what it waits for",
		Long: `Show a run live: progress, what runs and what it says, times, costs, quality, scores. What it shows is in the run's directory: no server is needed, and
none is started. Leaving (q or Ctrl+C) changes nothing.

On a terminal, keys do what the verbs do, where a server can be reached: p pause, P pause --now, r resume, b budget, and a number decides what the run waits for.
Elsewhere (a pipe, a file, TERM=dumb) it prints a line for what has happened, until the run rests or is over.

` + exitCodesHelp,
	}, &dir)
	cmd.Flags().BoolVar(&asJSON, "json", false, "the events as JSON, one a line, until the run rests or is over")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := a.find(named(args, dir))
		if err != nil {
			return err
		}
		if asJSON {
			return a.followEvents(cmd.Context(), d, func(s run.State) bool {
				return s.Status.Closed() && s.Status != "" || s.Status.Class() == run.OperatorPause
			})
		}
		if in, out, ok := a.terminal(); ok {
			return a.watchScreen(cmd.Context(), d, in, out)
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		v := newView(a.out, d)
		defer v.clear()
		var held notices
		asked := time.Now()
		return every(ctx, refresh, func(now time.Time) (bool, error) {
			rests, err := v.update(now)
			if err == nil && v.state.Status.Class() == run.Live && now.Sub(asked) >= serverEvery {
				asked = now
				if held.fresh(a.heldLine(a.standing(ctx, d, v.state.Status), d), now) {
					v.say("  ! " + run.OneLine(held.last))
				}
			}
			if !rests || err != nil {
				return false, err
			}
			v.clear()
			return true, a.goodbye(d, v.state, 0)
		})
	}
	return cmd
}

// every calls f until it says that it is over or the context ends, which is no error.
func every(ctx context.Context, d time.Duration, f func(time.Time) (over bool, err error)) error {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for now := time.Now(); ; {
		if over, err := f(now); over || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case now = <-tick.C:
		}
	}
}

func (a *app) logs() *cobra.Command {
	var dir string
	var follow, asJSON bool
	cmd := a.target(&cobra.Command{
		Use: "logs [RUN]", Short: "Print a run's log", Long: "Print orchestrator.log. No server is asked or needed.\n\n" + exitCodesHelp,
	}, &dir)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is added, until the run is over or Ctrl+C")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the events instead of the log, as JSON, one a line")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := a.find(named(args, dir))
		if err != nil {
			return err
		}
		if asJSON {
			return a.followEvents(cmd.Context(), d, func(s run.State) bool { return !follow || s.Status.Closed() && s.Status != "" })
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return a.tail(ctx, d, follow)
	}
	return cmd
}

// followEvents prints the lines of the journal as they are, and those that come, until the run is where somebody wants it.
func (a *app) followEvents(ctx context.Context, d rundir.Dir, there func(run.State) bool) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	fold := d.Fold()
	offset := int64(0)
	return every(ctx, refresh, func(time.Time) (bool, error) {
		lines, next, err := d.Follow(offset)
		if err != nil {
			return false, err
		}
		offset = next
		for _, line := range lines {
			e, err := run.ParseEvent([]byte(line))
			if err != nil {
				continue // damage; check names it
			}
			fold.Apply(e)
			fmt.Fprintln(a.out, line)
		}
		return there(fold.State()), nil
	})
}

func (a *app) tail(ctx context.Context, d rundir.Dir, follow bool) error {
	f, err := durable.Open(d.Path(rundir.TextLog))
	if err != nil {
		return fmt.Errorf("the run has no log yet: %w", err)
	}
	defer f.Close()
	return every(ctx, refresh, func(time.Time) (bool, error) {
		closed := false
		if m, err := d.Meta(); err == nil {
			closed = m.State.Status.Closed()
		}
		if _, err := io.Copy(a.out, f); err != nil {
			return false, err
		}
		return !follow || closed, nil
	})
}

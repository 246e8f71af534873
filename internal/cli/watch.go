package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/live"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) watch() *cobra.Command {
	cmd := &cobra.Command{
		Use: "watch [RUN]", Short: "Watch a run live and answer its questions",
		Long: `Show a run live: on the left its stages, rounds and passes, on the right what is selected: the open question, the
output of a running call, the reply and the changes of a completed one, all changes, or the log. Enter opens it, /
searches it, ? lists the keys. Tab shows panels with times, costs, quality and scores, which a run on a corpus begins
with. All is read from the run directory: no server is needed, and none is started. Leaving (q or Ctrl+C) changes
nothing.

On a terminal with a reachable server, keys work like the commands: p pause, P pause --now, r resume, b budget, and a
number answers the open question. Elsewhere (a pipe, a file, TERM=dumb) it prints a line per event until the run
pauses or finishes.`,
	}
	asJSON := cmd.Flags().Bool("json", false,
		"print the events as JSON, one per line, until the run pauses or finishes")
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		damage := sync.OnceValue(func() error { return a.damage(ctx, d) })
		if *asJSON {
			return a.followEvents(ctx, d, func(s run.State) (bool, error) {
				if s.Status.Closed() && s.Status != "" || s.Status.NeedsOperator() {
					return true, nil
				}
				return false, damage()
			})
		}
		if in, out, ok := a.terminal(); ok {
			return a.watchScreen(ctx, d, in, out)
		}
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		v := newEventPrinter(a.out, d)
		var held notices
		asked := time.Now()
		return api.Poll(ctx, api.Refresh, func(now time.Time) (bool, error) {
			rests, err := v.update()
			status := v.state.Status
			if err == nil && (status.Class() == run.Live || status == run.WaitingLimit) && now.Sub(asked) >= serverEvery {
				asked = now
				if held.fresh(a.heldLine(a.host().EffectiveStatus(ctx, d, v.state.Status), d), now) {
					v.note("  ! " + run.OneLine(held.last))
				}
			}
			if !rests || err != nil {
				return false, cmp.Or(err, damage())
			}
			return true, a.goodbye(d, v.state, 0)
		})
	})
}

func (a *app) logs() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "logs [RUN]", Short: "Print the log of a run",
		Long: `Print orchestrator.log. No server is needed. With --follow, what the agents of running calls print follows the
log: their text and tool calls, each line after the name of the call.`,
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "follow the log until the run finishes, or until Ctrl+C")
	asJSON := cmd.Flags().Bool("json", false, "print the events instead of the log, as JSON, one per line")
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		if *asJSON {
			return a.followEvents(ctx, d, func(s run.State) (bool, error) {
				return !follow || s.Status.Closed() && s.Status != "", nil
			})
		}
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return a.tail(ctx, d, follow)
	})
}

// damage returns what is wrong with a run directory that no worker repairs; nil: nothing.
func (a *app) damage(ctx context.Context, d rundir.Dir) error {
	s, err := a.inspect(ctx, d)
	if err != nil || s.Lost != nil || s.Effective.Liveness == run.LiveOpen {
		return cmp.Or(err, s.Lost)
	}
	return s.Now.Why
}

// followEvents prints the lines of the journal, and new lines as they are written, until the state of the run is final.
func (a *app) followEvents(ctx context.Context, d rundir.Dir, final func(run.State) (bool, error)) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	fold := run.NewFold(run.State{}, run.History{})
	offset := int64(0)
	return api.Poll(ctx, api.Refresh, func(time.Time) (bool, error) {
		for line, err := range d.Lines(offset) {
			if err != nil {
				return false, err
			}
			if offset = line.End; line.Err != nil {
				continue // damage; check names it
			}
			fold.Apply(line.Event)
			fmt.Fprintf(a.out, "%s\n", fold.Current().Wording.Line(line.Bytes))
		}
		return final(fold.State())
	})
}

// openLog opens the log of a run. With wait, it waits for that of a run that has just been started; nil: interrupted.
func (a *app) openLog(ctx context.Context, d rundir.Dir, wait bool) (f *os.File, err error) {
	opened := api.Poll(ctx, api.Refresh, func(time.Time) (bool, error) {
		f, err = d.OpenFile(rundir.TextLog)
		m, unread := d.Meta()
		return err == nil || !wait || !errors.Is(err, fs.ErrNotExist) || unread == nil && m.State.Status.Closed(), nil
	})
	switch {
	case opened != nil:
		return f, opened
	case err != nil && ctx.Err() != nil:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the run has no log yet: %w", err)
	}
	return f, nil
}

func (a *app) tail(ctx context.Context, d rundir.Dir, follow bool) error {
	f, err := a.openLog(ctx, d, follow)
	if err != nil || f == nil {
		return err
	}
	defer disk.Close(f)
	calls := tailCalls{a: a, calls: live.Calls{File: a.outputFile, Hide: a.secrets.Text}}
	return api.Poll(ctx, api.Refresh, func(now time.Time) (bool, error) {
		m, err := d.Meta()
		closed := err == nil && m.State.Status.Closed()
		if _, err := io.Copy(a.raw, f); err != nil {
			return false, err
		}
		if follow && !closed && err == nil {
			calls.print(d, m.State, now)
		}
		return !follow || closed, nil
	})
}

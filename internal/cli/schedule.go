package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // also on a host without the database

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

func (a *app) schedule() *cobra.Command {
	cmd := within(&cobra.Command{
		Use: "schedule", Short: "Start runs at set times",
		Long: `Start runs at set times. A schedule is a Temporal schedule whose runs start on the host where it was created.
docs/schedules.md explains missed times, overlaps and errors.`,
	})
	cmd.AddCommand(
		a.scheduleCreate(), a.scheduleList(), a.scheduleDescribe(), a.schedulePause(), a.scheduleUnpause(),
		a.scheduleTrigger(), a.scheduleBackfill(), a.scheduleDelete(),
	)
	return cmd
}

// durations are the flags of schedule create that take a duration.
type durations struct{ every, jitter, catchUp string }

func (a *app) scheduleCreate() *cobra.Command {
	var n operations.NewSchedule
	var in api.StartInput
	var d durations
	var root string
	cmd := &cobra.Command{
		Use: "create NAME --config FILE", Short: "Create a schedule", Args: oneSchedule("create"),
		Long: `Create a schedule that starts a run of a pipeline at set times on this host. The definition is checked now,
and read from its path at every start. Runs get PATH and the variables that the definition allows, as with starter
run; unpause updates them.

Each run has its own directory, OUTPUT-ROOT/NAME-YYYYMMDD-hhmmss, named after the UTC time at which it was due.
--overlap decides what happens at times when a run is open, paused or waiting; skip starts nothing. Times that were
missed because the server was stopped are caught up when it runs, within --catch-up-window; with skip that is one run.`,
		Example: `  starter schedule create nightly --cron "0 2 * * *" --config pipeline.yaml --task "Fix failing tests"
  starter schedule create hourly --every 1h --config pipeline.yaml --jitter 5m`,
	}
	f := cmd.Flags()
	f.StringVar(&in.Config, "config", "", "pipeline definition (YAML)")
	f.StringArrayVar(&n.Cron, "cron",
		nil, "cron expression: minute, hour, day of month, month, day of week; may be repeated")
	f.StringVar(&d.every, "every", "", "interval, such as 30m, 12h or 7d, counted from 1970-01-01 00:00 UTC")
	f.StringVar(&n.TimeZone, "time-zone", "", "time zone of --cron, such as Europe/Berlin (default: that of this host)")
	f.StringVar(&d.jitter, "jitter", "", "delay each start by a random time up to this")
	f.StringVar(&n.Overlap, "overlap", "skip", "what to do while a run is open: "+allOverlaps())
	f.StringVar(&d.catchUp, "catch-up-window", "",
		"how late a missed time is still caught up; at least 10s (default: one year)")
	f.StringVar(&root, "output-root", "", "folder for the run directories (default: run_root)")
	f.StringVar(&in.Task, "task", "", "what each run is to do; prompts have it as {{task}}")
	f.StringVar(&in.Source, "source", "", "the repository or folder to work on (default: the definition's folder)")
	f.StringVar(&in.Dirty, "dirty", "", dirtyUsage)
	f.BoolVar(&n.Paused, "paused", false, "create it paused")
	f.BoolVar(&n.PauseOnFailure, "pause-on-failure", false, "pause it when a run fails or cannot be started")
	f.StringVar(&n.Note, "note", "", "a note for schedule list")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		n.Name = args[0]
		wrong := d.into(&n)
		wrong = errors.Join(wrong, n.Check())
		def, _, err := a.host().Definition(in) // a schedule has no single directory
		if wrong != nil {
			return asUsage(errors.Join(wrong, err))
		}
		if err != nil {
			return err
		}
		if err := a.place(&n, in, root); err != nil {
			return err
		}
		s, err := a.connect(cmd.Context(), true)
		if err != nil {
			return err
		}
		defer s.Close()
		row, err := s.CreateSchedule(cmd.Context(), n, def)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "Created schedule %s\n", n.Name)
		a.printSchedule(row, s.Host)
		if s.Embedded {
			fmt.Fprintf(a.out, "\nIt keeps the server and the worker of this host running. "+
				"After a restart of the host: %[1]s server start. To automate that: %[1]s server install\n", program())
		}
		return nil
	}
	return cmd
}

func allOverlaps() string { return strings.Join(operations.Overlaps(), ", ") }

// into sets the durations, and reports all that are invalid.
func (d durations) into(n *operations.NewSchedule) error {
	var wrong []error
	for _, f := range []struct {
		name, text string
		to         *time.Duration
	}{{"every", d.every, &n.Every}, {"jitter", d.jitter, &n.Jitter}, {"catch-up-window", d.catchUp, &n.CatchUp}} {
		if f.text == "" {
			continue
		}
		v, err := spanOf(f.text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--%s %s: write a duration, such as 90s, 30m, 12h or 7d", f.name, f.text))
		}
		*f.to = v
	}
	return errors.Join(wrong...)
}

// spanOf parses a positive duration; the unit d is a day.
func spanOf(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil {
			return 0, err
		}
		text = fmt.Sprintf("%fh", n*24)
	}
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("not positive")
	}
	return d, err
}

// place makes the paths absolute and sets the time zone.
func (a *app) place(n *operations.NewSchedule, in api.StartInput, root string) error {
	n.Task, n.Source, n.Dirty = strings.TrimSpace(in.Task), in.Source, in.Dirty
	n.Config, n.Root = in.Config, cmp.Or(root, a.settings.RunRoot)
	for _, p := range []*string{&n.Config, &n.Root, &n.Source} {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return err
		}
		*p = abs
	}
	zoned := strings.Contains(strings.Join(n.Cron, " "), "TZ=")
	if n.TimeZone == "" && !zoned && len(n.Cron) > 0 {
		n.TimeZone = hostZone()
	}
	return nil
}

// hostZone returns the IANA name of this host's time zone; empty, which means UTC, if it is unknown.
func hostZone() string {
	name, set := os.LookupEnv("TZ")
	if !set {
		if link, err := os.Readlink("/etc/localtime"); err == nil {
			_, name, _ = strings.Cut(link, "zoneinfo/")
		}
	}
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		return ""
	}
	return name
}

// oneSchedule requires the name of one schedule.
func oneSchedule(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return asUsage(fmt.Errorf("name one schedule: starter schedule %s NAME", shell.Quote(verb)))
		}
		return nil
	}
}

// onSchedule completes a verb on one schedule.
func (a *app) onSchedule(
	cmd *cobra.Command, verb string, do func(ctx context.Context, s *session, name string) error,
) *cobra.Command {
	cmd.Args = oneSchedule(verb)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.connect(cmd.Context(), verb != "pause" && verb != "delete")
		if err != nil {
			return err
		}
		defer s.Close()
		return meantSchedule(do(cmd.Context(), s, args[0]))
	}
	return cmd
}

// meantSchedule adds schedules with similar names to an error.
func meantSchedule(err error) error {
	var unknown *operations.ScheduleError
	if errors.As(err, &unknown) && unknown.Known != nil {
		hint := cmp.Or(didYouMean(unknown.Name, unknown.Known), "; to list all: starter schedule list")
		return asUsage(fmt.Errorf("%w%s", err, hint))
	}
	return err
}

func (a *app) schedulePause() *cobra.Command {
	var note string
	cmd := &cobra.Command{Use: "pause NAME", Short: "Pause a schedule; its runs continue"}
	cmd.Flags().StringVar(&note, "note", "", "the reason")
	return a.onSchedule(cmd, "pause", func(ctx context.Context, s *session, name string) error {
		n, err := s.PauseSchedule(ctx, name, note)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "Paused schedule %s. Times that pass meanwhile are not caught up.%s\n", name, cancelled(n))
		return nil
	})
}

// cancelled describes what a pause or a deletion cancelled.
func cancelled(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" Due starts that were cancelled: %d.", n)
}

func (a *app) scheduleUnpause() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "unpause NAME", Short: "Unpause a schedule from its next time",
		Long: `Unpause a schedule from its next time. The following runs get PATH and the variables that the definition
allows from this terminal, also if the schedule is not paused.`,
	}
	cmd.Flags().StringVar(&note, "note", "", "the reason")
	return a.onSchedule(cmd, "unpause", func(ctx context.Context, s *session, name string) error {
		if err := s.UnpauseSchedule(ctx, name, note); err != nil {
			return err
		}
		row, err := s.Schedule(ctx, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "Unpaused schedule %s. Next run: %s\n", name, nextRun(row))
		return nil
	})
}

func (a *app) scheduleTrigger() *cobra.Command {
	var overlap string
	cmd := &cobra.Command{Use: "trigger NAME", Short: "Start a run now, also of a paused schedule"}
	cmd.Flags().StringVar(&overlap, "overlap", "", "overlap policy of this start (default: the schedule's)")
	return a.onSchedule(cmd, "trigger", func(ctx context.Context, s *session, name string) error {
		x, err := s.TriggerSchedule(ctx, name, overlap)
		switch {
		case err != nil:
			return err
		case x == nil:
			fmt.Fprintf(a.out,
				"Nothing was started: a run of schedule %s is open. To see it: %s schedule describe %s. "+
					"To start another run beside it: --overlap allow-all\n", name, program(), shell.Quote(name))
			return silentExit(exitAttention)
		case x.RunID == "":
			return fmt.Errorf("trigger schedule %s: %s: %s", name, x.Status, x.Problem)
		}
		fmt.Fprintf(a.out, "Started run %s\n  directory  %s\n", x.RunID, x.Directory)
		return nil
	})
}

func (a *app) scheduleBackfill() *cobra.Command {
	var from, to, overlap string
	cmd := &cobra.Command{
		Use: "backfill NAME --from TIME --to TIME", Short: "Start the runs of past times",
		Long: `Start the runs that were due between two times, as if these times passed now. Without --overlap they run one
after another.`,
	}
	cmd.Flags().StringVar(&from, "from", "", "first time: "+momentForms)
	cmd.Flags().StringVar(&to, "to", "", "last time, in the same forms (default: now)")
	cmd.Flags().StringVar(&overlap, "overlap", "",
		"overlap policy of these starts: "+allOverlaps()+" (default: buffer-all)")
	do := a.onSchedule(cmd, "backfill", func(ctx context.Context, s *session, name string) error {
		first, last, err := backfillTimes(from, to, time.Now())
		if err != nil {
			return err
		}
		if err := s.BackfillSchedule(ctx, name, first, last, overlap); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "Requested the runs of schedule %s from %s to %s. To see them: %s schedule describe %s\n",
			name, localTime(run.Time(first)), localTime(run.Time(last)), program(), shell.Quote(name))
		return nil
	})
	connected := do.RunE
	do.RunE = func(cmd *cobra.Command, args []string) error {
		if _, _, err := backfillTimes(from, to, time.Now()); err != nil { // before a server is started
			return err
		}
		return connected(cmd, args)
	}
	return do
}

func backfillTimes(from, to string, now time.Time) (first, last time.Time, err error) {
	if from == "" {
		return first, last, asUsage(errors.New("name the times: --from TIME --to TIME"))
	}
	if first, err = momentOf("--from", from, now); err != nil {
		return first, last, asUsage(err)
	}
	last = now
	if to != "" {
		if last, err = momentOf("--to", to, now); err != nil {
			return first, last, asUsage(err)
		}
	}
	if last.Before(first) {
		return first, last, asUsage(fmt.Errorf("--to %s is before --from %s", to, from))
	}
	return first, last, nil
}

func (a *app) scheduleDelete() *cobra.Command {
	cmd := &cobra.Command{Use: "delete NAME", Short: "Delete a schedule; its runs continue", Aliases: []string{"rm"}}
	return a.onSchedule(cmd, "delete", func(ctx context.Context, s *session, name string) error {
		n, err := s.DeleteSchedule(ctx, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "Deleted schedule %s. Its runs continue, and their directories stay.%s\n", name,
			cancelled(n))
		return nil
	})
}

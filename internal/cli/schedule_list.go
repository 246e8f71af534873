package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// scheduleReport is the output of `schedule list --json`.
type scheduleReport struct {
	Schedules []operations.ScheduleRow `json:"schedules"`
	Server    string                   `json:"server"`  // that was asked; empty: none
	Problem   string                   `json:"problem"` // why no server answered; then nothing starts
}

func (a *app) scheduleList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List schedules with their next and last runs", Args: cobra.NoArgs, Aliases: []string{"ls"},
		Long: `List schedules with their next and last runs, and what keeps a run from starting. No server is started;
without a server nothing starts, and the exit code is 3.`,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, host, err := a.schedules(cmd.Context())
		if err != nil {
			return err
		}
		err = show(a, *asJSON, r, func(r scheduleReport) { a.printSchedules(r, host) })
		if r.Problem != "" && err == nil {
			return silentExit(exitAttention)
		}
		return err
	}
	return cmd
}

// schedules asks the server, if it runs.
func (a *app) schedules(ctx context.Context) (scheduleReport, string, error) {
	brief, stop := context.WithTimeout(ctx, api.AskFor)
	defer stop()
	op, err := a.host().Peek(brief, run.Claim{})
	if err != nil {
		r := scheduleReport{Schedules: []operations.ScheduleRow{}, Problem: err.Error()}
		return r, "", nil //nolint:nilerr // reported
	}
	defer op.Client.Close()
	ctx, cancel := context.WithTimeout(ctx, api.ListTimeout)
	defer cancel()
	rows, err := op.Schedules(ctx)
	return scheduleReport{Schedules: rows, Server: op.Address}, op.Host, err
}

func (a *app) printSchedules(r scheduleReport, host string) {
	switch {
	case r.Problem != "":
		fmt.Fprintf(a.out, "Schedules cannot be listed, and start nothing: %s. To start the server: %s server start\n",
			r.Problem, program())
		return
	case len(r.Schedules) == 0:
		fmt.Fprintf(a.out, "No schedules. To create one: %s schedule create NAME --cron \"0 2 * * *\" --config FILE\n",
			program())
		return
	}
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tTIMES\tSTATE\tNEXT\tLAST\tLAST RUN\tCONFIG")
	for _, s := range r.Schedules {
		last, ran := lastRun(s)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			s.Name, strings.Join(s.Times, ", "), scheduleState(s, host), nextRun(s), last, ran, here(s.Config))
	}
	_ = t.Flush() // to a terminal or a buffer
	for _, s := range r.Schedules {
		if s.Problem != "" {
			fmt.Fprintf(a.out, "\n%s: %s\n", s.Name, s.Problem)
		}
	}
}

func scheduleState(s operations.ScheduleRow, host string) string {
	state := "active"
	if s.Paused {
		state = "paused"
	}
	if s.Host != host {
		state += " on " + s.Host
	}
	return state
}

func lastRun(s operations.ScheduleRow) (at, ran string) {
	if len(s.Recent) == 0 {
		return "-", "-"
	}
	x := s.Recent[0]
	return localTime(cmp.Or(x.At, x.StartedAt)), strings.TrimSpace(fmt.Sprintf("%.8s %s", x.RunID, x.Status))
}

func nextRun(s operations.ScheduleRow) string {
	switch {
	case s.Paused:
		return "-"
	case len(s.Next) == 0:
		return "none"
	}
	return localTime(s.Next[0])
}

// localTime converts a recorded time to local time.
func localTime(at string) string {
	t, err := time.Parse(run.TimeFormat, at)
	if err != nil {
		return cmp.Or(at, "-")
	}
	return t.Local().Format(time.DateTime)
}

func (a *app) scheduleDescribe() *cobra.Command {
	cmd := &cobra.Command{
		Use: "describe NAME", Short: "Show a schedule, its next times and its last ten runs",
		Args: oneSchedule("describe"),
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		op, err := a.host().Peek(cmd.Context(), run.Claim{})
		if err != nil {
			return fmt.Errorf("describe schedule %s: %w; to start the server: %s server start", args[0], err, program())
		}
		defer op.Client.Close()
		row, err := op.Schedule(cmd.Context(), args[0])
		if err != nil {
			return meantSchedule(err)
		}
		return show(a, *asJSON, row, func(row operations.ScheduleRow) {
			a.printSchedule(row, op.Host)
			a.printOccurrences(row)
		})
	}
	return cmd
}

func (a *app) printSchedule(s operations.ScheduleRow, host string) {
	field := func(label, text string) {
		if text != "" {
			fmt.Fprintf(a.out, "  %-14s %s\n", label, text)
		}
	}
	field("times", strings.Join(s.Times, ", ")+" ("+s.TimeZone+")"+jitter(s))
	field("state", scheduleState(s, host))
	field("note", s.Note)
	field("overlap", s.Overlap)
	field("catch-up", inDays(time.Duration(s.CatchUpWindowS)*time.Second))
	field("definition", s.Config)
	field("task", s.Task)
	field("source", s.Source)
	field("directories", s.OutputRoot)
	for i, at := range s.Next {
		if i == 3 {
			break
		}
		field(map[bool]string{true: "next runs"}[i == 0], localTime(at))
	}
	field("problem", s.Problem)
}

func jitter(s operations.ScheduleRow) string {
	if s.JitterS == 0 {
		return ""
	}
	return fmt.Sprintf(", up to %s later", time.Duration(s.JitterS)*time.Second)
}

func (a *app) printOccurrences(s operations.ScheduleRow) {
	fmt.Fprintf(a.out, "\nStarted %d, skipped because a run was open %d, missed after the catch-up window %d.\n",
		s.Starts, s.Skipped, s.Missed)
	if len(s.Recent) == 0 {
		return
	}
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nDUE\tSTARTED\tRUN\tSTATUS\tDIRECTORY")
	for _, x := range s.Recent {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", localTime(x.At), localTime(x.StartedAt),
			fmt.Sprintf("%.8s", cmp.Or(x.RunID, "-")), x.Status, cmp.Or(here(x.Directory), "-"))
	}
	_ = t.Flush() // to a terminal or a buffer
	for _, x := range s.Recent {
		if x.Problem != "" {
			fmt.Fprintf(a.out, "\n%s: %s\n", localTime(x.At), x.Problem)
		}
	}
}

// inDays formats a whole number of days in days.
func inDays(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 2*day || d%day != 0 {
		return d.String()
	}
	return fmt.Sprintf("%d days", d/day)
}

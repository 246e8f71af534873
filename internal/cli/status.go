package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) status() *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use: "status [RUN]", Short: "Show the status of a run from its directory",
		Long: `Show the status of a run as its directory records it, and the status of its workflow if Temporal can be
reached. No server is needed, and none is started. A run whose events leave it open, and whose workflow has ended, is
shown as interrupted. An open workflow first continues from the directory if that is newer, as after Temporal's database
was restored from a backup.

With --verbose, also explain the status: its cause, what to do, the journal, running calls, the last errors, the last
session of each role, the runs of the lineage, and the messages with which tctl and the Temporal CLI answer a question.
To find damage in the directory itself, run: starter check

A recorded status of any kind has exit code 0, also a failed run and an open question; 3 means that the directory is
damaged, and 4 that an interrupted run has an open question.`,
	}
	asJSON := jsonFlag(cmd)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "explain the status")
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		a.host().Refresh(ctx, d)
		s, err := a.inspect(ctx, d)
		if err == nil {
			s.Errors, err = api.LastErrors(d)
		}
		if err != nil {
			return err
		}
		if *asJSON {
			if err := a.json(s.report()); err != nil {
				return err
			}
			return s.attention()
		}
		a.printStatus(s, verbose)
		if verbose {
			if err := a.printMore(ctx, s); err != nil {
				return err
			}
		}
		a.printNext(s.Next(), verbose)
		return s.attention()
	})
}

// attention returns the exit code of a damaged run, and of an interrupted one with an open question.
func (s inspection) attention() error {
	if _, open := s.Now.State.Asks(); open && s.Effective.Status == run.Interrupted {
		return silentExit(exitOperator)
	}
	if s.Damaged() {
		return silentExit(exitAttention)
	}
	return nil
}

// printStatus prints the status of a run (requirement 002 §9.1).
func (a *app) printStatus(s inspection, verbose bool) {
	s.Today, s.Calls = a.dayText(s.Now.State), a.callRows(s, time.Now())
	fmt.Fprintf(a.out, "Pipeline Status\n═══════════════\n")
	a.printRows(s.Identity())
	if verbose {
		a.printRows(s.Diagnosis())
	}
	fmt.Fprintln(a.out)
	a.printRows(append(s.Work(), s.ProjectRows()...))
	if last := s.LastPasses(); len(last) > 0 {
		fmt.Fprintf(a.out, "\nLast %d passes:\n", len(last))
		for _, line := range last {
			fmt.Fprintf(a.out, "  %s\n", line)
		}
		fmt.Fprintln(a.out)
	}
	a.printRows(s.Health())
	if q, open := s.Now.State.Asks(); open {
		a.page(a.attachedLines(api.FailedCommands(s.dir, q)), allLines)
	}
}

// printMore prints what --verbose adds: journal, running calls, locations, last errors, sessions, lineage, and the
// messages for Temporal's own tools.
func (a *app) printMore(ctx context.Context, s inspection) error {
	s.Cluster = s.dir.CurrentClaim(s.Claim).Cluster
	fmt.Fprintln(a.out)
	a.printRows(s.Details())
	for _, line := range s.LastErrors() {
		fmt.Fprintf(a.out, "  %s\n", line)
	}
	a.printSessions(s.dir)
	next := s.Next()
	if _, asks := run.Offers(next, run.Decide); asks {
		for _, c := range shell.Temporal(shell.Signal, s.Claim.RunID, next) {
			a.row("Signal", "%s && %s", host.UseServer(program()), c)
		}
	}
	return a.printLineage(ctx, s.Claim)
}

// printNext prints the next commands. Of a question only the command that shows it is printed, unless all are wanted.
func (a *app) printNext(commands []run.Command, all bool) {
	if len(commands) > 1 && commands[0].Operation == run.Decide && !all {
		commands = slices.DeleteFunc(commands, func(c run.Command) bool { return c.Operation == run.Decide && len(c.Messages) > 0 })
	}
	for i, next := range shell.Next(program(), commands) {
		if i == 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprintf(a.out, "Next: %s\n", next)
	}
}

// printRows prints named values, aligned as requirement 002 §9.1 shows. One without a name continues the one before it.
func (a *app) printRows(all []view.Row) {
	width := len("Last save: ")
	for _, r := range all {
		width = max(width, len(r.Name+": "))
	}
	for _, r := range all {
		name := ""
		if r.Name != "" {
			name = r.Name + ":"
		}
		fmt.Fprintf(a.out, "%-*s%s\n", width, name, run.OneLine(r.Value))
	}
}

// row prints one named value.
func (a *app) row(name, format string, args ...any) {
	fmt.Fprintf(a.out, "%-12s %s\n", name+":", run.OneLine(fmt.Sprintf(format, args...)))
}

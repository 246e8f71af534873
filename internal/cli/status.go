package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
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

A recorded status of any kind has exit code 0, also a failed run and an open question; 3 means that the directory is
damaged, and 4 that an interrupted run has an open question. starter diagnose has 4 for every open question.`,
	}
	asJSON := jsonFlag(cmd)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false,
		"also show epoch, running calls, journal, store, last errors, the last session of each role, and the runs of the lineage")
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		a.host().Refresh(ctx, d)
		s, err := a.inspect(ctx, d)
		if err != nil {
			return err
		}
		if *asJSON {
			if err := a.json(s.report()); err != nil {
				return err
			}
			return s.attention()
		}
		a.printStatus(s)
		if verbose {
			if err := a.printMore(s); err != nil {
				return err
			}
			a.printSessions(s.dir)
			if err := a.printLineage(ctx, s.Claim); err != nil {
				return err
			}
		}
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
func (a *app) printStatus(s inspection) {
	s.Server, s.Today, s.Calls = a.insecure(), a.dayText(s.Now.State), a.callRows(s, time.Now())
	fmt.Fprintf(a.out, "Pipeline Status\n═══════════════\n")
	a.printRows(s.Identity())
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
	a.printNext(nextCommands(s))
}

// printNext prints the next commands.
func (a *app) printNext(commands []string) {
	for i, next := range commands {
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

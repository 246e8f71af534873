package cli

import (
	"context"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// verify runs the commands of a finished run again.
func (a *app) verify() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify [RUN]", Short: "Run the gates of a finished run again",
		Long: `Run the commands (run steps) of a finished run again, each on a new copy of the run's final tree, and compare
the results with the recorded ones. Equal commands of several steps run once. They have the sandbox, the limits and the
environment of the run; if its environment is no longer kept, that of this terminal. Neither the run directory nor your
checkout changes. No server is needed. If a command fails, the exit code is 3.`,
	}
	asJSON := jsonFlag(cmd)
	return a.onNamed(cmd, func(ctx context.Context, name string) error {
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		v, err := api.Verify(ctx, a.host(), api.RunInput{Run: name})
		if err != nil {
			return err
		}
		if err := show(a, *asJSON, v, a.printVerified); err != nil || v.Passed {
			return err
		}
		return silentExit(exitAttention)
	})
}

func (a *app) printVerified(v operations.Verified) {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "COMMAND\tEXIT\tTIME\tRECORDED\tRESULT")
	for _, g := range v.Gates {
		fmt.Fprintf(w, "%s\t%d\t%.1fs\t%s\t%s\n", run.Cut(run.OneLine(g.Command), 60), g.ExitCode, g.Duration().Seconds(),
			orDash(g.Recorded), gateResult(g))
	}
	_ = w.Flush() // a.out reports its errors at the end
	for _, g := range v.Gates {
		if g.Passed {
			continue
		}
		fmt.Fprintf(a.out, "\n%s:\n", run.OneLine(g.Command))
		for line := range strings.Lines(strings.TrimSpace(g.Problem + "\n" + g.Output)) {
			fmt.Fprintf(a.out, "  %s\n", run.OneLine(line))
		}
	}
	fmt.Fprintf(a.out, "\nTree %.12s of run %s\n", v.Tree, v.RunID)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// gateResult is the result of a gate, and whether it is another one than recorded.
func gateResult(g operations.Gate) string {
	now := string(run.CategoryOK)
	if !g.Passed {
		now = "failed"
	}
	if g.Recorded != "" && g.Recorded != now {
		return now + ", differs"
	}
	return now
}

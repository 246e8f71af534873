package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
)

func (a *app) replay() *cobra.Command {
	b := operate.Branching{Mode: run.ModeReplay}
	cmd := a.branch(&cobra.Command{
		Use: "replay RUN", Short: "Make a new run that does the work of another one again, from a checkpoint on",
		Long: `Make a new run that does what another one did, from a checkpoint or step boundary on. The other run stays as it is.
With the recorded results (the default) nothing is called whose answer is there: same question, same answer. What has no record is called.

` + exitCodesHelp,
		Example: "  starter replay RUN --from cp-S5\n  starter replay RUN --from pass-35 --policy reexecute",
	}, &b)
	cmd.Flags().StringVar(&b.Policy, "policy", run.UseRecorded, "for side effects: use_recorded_result, reexecute, or require_human (asks before each call)")
	return cmd
}

func (a *app) fork() *cobra.Command {
	b := operate.Branching{Mode: run.ModeFork}
	var file, command string
	cmd := a.branch(&cobra.Command{
		Use: "fork RUN", Short: "Make a new run of a checkpoint of another one, perhaps with another model, budget or pipeline",
		Long: `Make a new run that goes on from a checkpoint of another one. The other run stays as it is; both share the store. Approvals are not inherited, and
the new run's money is its own. The setting policy.forbid says what a fork may not change.

` + exitCodesHelp,
		Example: "  starter fork RUN --from cp-S3 --model claude-sonnet-5 --budget 50\n  starter fork RUN --from cp-S7 --config other-tail.yaml",
	}, &b)
	cmd.Flags().StringVar(&b.Task, "task", "", "another task")
	cmd.Flags().Float64Var(&b.Budget, "budget", 0, "another budget, in USD")
	cmd.Flags().StringVar(&b.Model, "model", "", "another model for every agent (its --model)")
	cmd.Flags().StringVar(&command, "agent", "", "another command for every agent, its words separated by spaces")
	cmd.Flags().StringVar(&file, "config", "", "another pipeline, the same up to the checkpoint")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if b.Budget < 0 {
			return asUsage(fmt.Errorf("--budget is %g: say a sum above 0", b.Budget))
		}
		b.Agent = strings.Fields(command)
		if file == "" {
			return nil
		}
		def, err := loadFile(file)
		b.Def = &def
		return err
	}
	return cmd
}

// branch makes a verb that makes a new run of another one.
func (a *app) branch(cmd *cobra.Command, b *operate.Branching) *cobra.Command {
	var detach bool
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return asUsage(errors.New("name the run that it comes of: an id or a directory"))
		}
		return nil
	}
	cmd.Flags().StringVar(&b.From, "from", "", "checkpoint (starter checkpoints), or a boundary: pass-35, cycle-2")
	cmd.Flags().StringVar(&b.Dir, "output-dir", "", "directory of the new run (default: in run_root)")
	cmd.Flags().StringVar(&b.Request, "request", "", "a name for this request: given again, no second run is made")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not stay attached")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.startBranch(cmd.Context(), args[0], *b, detach)
	}
	return cmd
}

func (a *app) startBranch(ctx context.Context, what string, b operate.Branching, detach bool) error {
	if err := b.CheckDir(a.settings.RunRoot); err != nil { // before a server is started
		return err
	}
	s, err := a.connect(ctx, true)
	if err != nil {
		return err
	}
	defer s.Close()
	from, err := s.Origin(ctx, what)
	if err != nil {
		return err
	}
	b.Warn = func(text string) { fmt.Fprintln(a.err, "Warning:", text) }
	st, err := s.Branch(ctx, from, b)
	if err != nil {
		return err
	}
	a.greet(s, st)
	if detach {
		fmt.Fprintf(a.out, "Detached. Look with: %s status %s\n", program(), shell.Quote(st.Dir.Root))
		return nil
	}
	return a.attach(ctx, s, st, pauses)
}

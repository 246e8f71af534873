package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

func (a *app) replay() *cobra.Command {
	b := operations.Branching{Mode: run.ModeReplay}
	cmd := a.branch(&cobra.Command{
		Use: "replay RUN", Short: "Repeat the work of a run in a new run, from a checkpoint",
		Long: `Repeat the work of a run in a new run, from a checkpoint or step boundary. The original run does not change.
By default it starts from the first checkpoint, and recorded results are used: a call is made only if no answer to the
same question is recorded.`,
		Example: "  starter replay RUN --from cp-S5\n  starter replay RUN --from pass-35 --policy reexecute",
	}, &b)
	cmd.Flags().StringVar(&b.Policy, "policy",
		run.UseRecorded, "for side effects: use_recorded_result, reexecute, or require_human (asks before each call)")
	return cmd
}

func (a *app) fork() *cobra.Command {
	b := operations.Branching{Mode: run.ModeFork}
	var file, command string
	cmd := a.branch(&cobra.Command{
		Use: "fork RUN", Short: "Start a new run from a checkpoint, with another model, budget or pipeline",
		Long: `Start a new run from a checkpoint of another run. The other run does not change, and both share the store.
Without --from it starts from the newest checkpoint. A completed run has no step left after that one, so --from is
required: without it, the error lists the checkpoints and their commands. Approvals are not inherited, and costs start
at zero. The setting policy.forbid lists what a fork must not change.`,
		Example: "  starter fork RUN --from cp-S3 --model claude-sonnet-5 --budget 50\n" +
			"  starter fork RUN --from cp-S7 --config other-tail.yaml",
	}, &b)
	cmd.Flags().StringVar(&b.Task, "task", "", "another task")
	cmd.Flags().Float64Var(&b.Budget, "budget", 0, "another budget, in USD")
	cmd.Flags().StringVar(&b.Model, "model", "", "another model for every agent (its --model)")
	cmd.Flags().StringVar(&command, "agent", "", "another command for every agent, its words separated by spaces")
	cmd.Flags().StringVar(&file, "config", "", "another pipeline, the same up to the checkpoint")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if b.Budget < 0 {
			return asUsage(fmt.Errorf("--budget is %g; it must be above 0", b.Budget))
		}
		b.Agent = strings.Fields(command)
		if file == "" {
			return nil
		}
		def, err := a.loadFile(file)
		b.Def = &def
		return err
	}
	return cmd
}

// branch completes a verb that starts a new run from another one.
func (a *app) branch(cmd *cobra.Command, b *operations.Branching) *cobra.Command {
	var detach bool
	asJSON := startedFlag(cmd)
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return asUsage(errors.New("name the run to start from: an id or a directory"))
		}
		return nil
	}
	cmd.Flags().StringVar(&b.From, "from", "", "checkpoint (starter checkpoints), or a boundary: pass-35, round-2")
	cmd.Flags().StringVar(&b.Dir, "output-dir", "", "directory of the new run (default: in run_root)")
	cmd.Flags().StringVar(&b.Request, "request", "", "a name for this request; repeated, it starts no second run")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not stay attached")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		b.Command = asTyped(cmd, args)
		return a.asJSON(*asJSON, func() error { return a.startBranch(cmd.Context(), args[0], *b, detach) })
	}
	return cmd
}

// asTyped returns the words of a command without the program, flags last.
func asTyped(cmd *cobra.Command, args []string) []string {
	words := append([]string{cmd.Name()}, args...)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch value := f.Value.String(); {
		case f.Value.Type() != "bool":
			words = append(words, "--"+f.Name, value)
		case value == "true":
			words = append(words, "--"+f.Name)
		}
	})
	return words
}

func (a *app) startBranch(ctx context.Context, what string, b operations.Branching, detach bool) error {
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
		fmt.Fprintf(a.out, "Detached. To see its status: %s status %s\n", program(), shell.Quote(st.Dir.Root))
		return nil
	}
	return a.attach(ctx, s, st, pauses)
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

func (a *app) replay() *cobra.Command {
	var in api.ReplayInput
	cmd := &cobra.Command{
		Use: "replay RUN", Short: "Repeat the work of a run in a new run, from a checkpoint",
		Long: `Repeat the work of a run in a new run, from a checkpoint or step boundary. The original run does not change.
By default it starts from the first checkpoint, and recorded results are used: a call is made only if no answer to the
same question is recorded.`,
		Example: "  starter replay RUN --from cp-S5\n  starter replay RUN --from pass-35 --policy reexecute",
	}
	f := branchFlags{&in.From, &in.Directory, &in.Request}
	a.branch(cmd, f, func(ctx context.Context, h api.Host, name string, typed []string) (api.Started, error) {
		in.Run, in.Command, in.Warn = name, typed, a.warn
		return api.Replay(ctx, h, in)
	})
	cmd.Flags().StringVar(&in.Policy, "policy",
		run.UseRecorded, "for side effects: use_recorded_result, reexecute, or require_human (asks before each call)")
	return cmd
}

func (a *app) fork() *cobra.Command {
	var in api.ForkInput
	var command string
	cmd := &cobra.Command{
		Use: "fork RUN", Short: "Start a new run from a checkpoint, with another model, budget or pipeline",
		Long: `Start a new run from a checkpoint of another run. The other run does not change, and both share the store.
Without --from it starts from the newest checkpoint. A completed run has no step left after that one, so --from is
required: without it, the error lists the checkpoints and their commands. Approvals are not inherited, and costs start
at zero. The setting policy.forbid lists what a fork must not change.`,
		Example: "  starter fork RUN --from cp-S3 --model claude-sonnet-5 --budget 50\n" +
			"  starter fork RUN --from cp-S7 --config other-tail.yaml",
	}
	f := branchFlags{&in.From, &in.Directory, &in.Request}
	a.branch(cmd, f, func(ctx context.Context, h api.Host, name string, typed []string) (api.Started, error) {
		in.Run, in.Command, in.Warn, in.Agent = name, typed, a.warn, strings.Fields(command)
		return api.Fork(ctx, h, in)
	})
	cmd.Flags().StringVar(&in.Task, "task", "", "another task")
	cmd.Flags().Float64Var(&in.BudgetUSD, "budget", 0, "another budget, in USD")
	cmd.Flags().StringVar(&in.Model, "model", "", "another model for every agent (its --model)")
	cmd.Flags().StringVar(&command, "agent", "", "another command for every agent, its words separated by spaces")
	cmd.Flags().StringVar(&in.Config, "config", "", "another pipeline, the same up to the checkpoint")
	return cmd
}

func (a *app) warn(text string) { fmt.Fprintln(a.err, "Warning:", text) }

// branchFlags are the flags of the verbs that start a new run from another one.
type branchFlags struct{ from, dir, request *string }

// branch completes a verb that starts a new run from another one.
func (a *app) branch(cmd *cobra.Command, f branchFlags,
	start func(ctx context.Context, h api.Host, name string, typed []string) (api.Started, error)) {
	var detach bool
	asJSON := startedFlag(cmd)
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return asUsage(errors.New("name the run to start from: an id or a directory"))
		}
		return nil
	}
	cmd.Flags().StringVar(f.from, "from", "", "checkpoint (starter checkpoints), or a boundary: pass-35, round-2")
	cmd.Flags().StringVar(f.dir, "output-dir", "", "directory of the new run (default: in run_root)")
	cmd.Flags().StringVar(f.request, "request", "", "a name for this request; repeated, it starts no second run")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not stay attached")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.asJSON(*asJSON, func() error {
			return a.startBranch(cmd.Context(), detach, func(ctx context.Context, h api.Host) (api.Started, error) {
				return start(ctx, h, args[0], asTyped(cmd, args))
			})
		})
	}
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

// startBranch starts a new run, and attaches to it with the same connection.
func (a *app) startBranch(ctx context.Context, detach bool,
	start func(context.Context, api.Host) (api.Started, error)) error {
	var s *session
	h := a.host()
	h.Connect = func(ctx context.Context) (o operations.Operator, release func(), err error) {
		if s, err = a.connect(ctx, true); err != nil {
			return o, nil, err
		}
		return s.Operator, func() {}, nil
	}
	st, err := start(ctx, h)
	if s != nil {
		defer s.Close()
	}
	if err != nil {
		return err
	}
	a.greet(s, st.Made)
	if detach {
		fmt.Fprintf(a.out, "Detached. To see its status: %s status %s\n", program(), shell.Quote(st.Directory))
		return nil
	}
	return a.attach(ctx, s, st.Made)
}

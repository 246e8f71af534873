package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/passbook-run/passbook/internal/api"
)

func (a *app) budget() *cobra.Command {
	var in api.BudgetInput
	cmd := &cobra.Command{Use: "budget [RUN]", Short: "Show or set the budget of a run",
		Long: `Set budgets of a run. Without flags, show its budgets and what is used. Without RUN, show the budget of the day
of this host (per_day in the settings), and what the calls of today use.`}
	cmd.Flags().StringVar(&in.Note, "note", "", "a note for the record")
	cmd.Flags().Float64Var(&in.USD, "usd", 0, "the new cap, in USD")
	cmd.Flags().Int64Var(&in.Tokens, "tokens", 0, "tokens of all kinds that the run may use")
	cmd.Flags().IntVar(&in.Calls, "calls", 0, "calls of agents that the run may make")
	cmd.Flags().Float64Var(&in.Hours, "hours", 0, "hours that the run may work, without pauses and questions")
	cmd.Flags().StringVar(&in.Deadline, "deadline", "", "time after which it makes no call: 2026-11-25T18:00:00Z, "+
		"or 2026-11-25 18:00 Europe/Berlin")
	a.onNamed(cmd, func(ctx context.Context, name string) error {
		in.Run = name
		if !cmd.Flags().Changed("note") && !setsBudget(cmd.Flags()) {
			return a.showBudget(ctx, name)
		}
		return a.answered(api.Budget(ctx, a.host(), in))
	})
	set := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().NFlag() == 0 && len(args) == 0 {
			return a.showDay()
		}
		return set(cmd, args)
	}
	return cmd
}

// answered prints the answer of a run.
func (a *app) answered(out api.Answer, err error) error {
	if out.Message != "" {
		fmt.Fprintln(a.out, out.Message)
	}
	return err
}

// setsBudget reports whether a flag names a budget.
func setsBudget(flags *pflag.FlagSet) bool {
	return slices.ContainsFunc([]string{"usd", "tokens", "calls", "hours", "deadline"}, flags.Changed)
}

// showBudget prints the budgets of a run, and what is used.
func (a *app) showBudget(ctx context.Context, name string) error {
	d, err := a.find(name)
	if err != nil {
		return err
	}
	s, err := a.inspect(ctx, d)
	if err != nil {
		return err
	}
	s.Today = a.dayText(s.Now.State)
	a.printRows(s.Budgets())
	return nil
}

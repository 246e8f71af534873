package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// CheckoutReport is the output of `snapshot checkout --json`.
type CheckoutReport struct {
	Turn int    `json:"turn"`
	Tree string `json:"tree"`
	Dir  string `json:"dir"`
}

func (a *app) snapshot() *cobra.Command {
	cmd := within(&cobra.Command{
		Use: "snapshot", Short: "List, compare and restore the trees after the turns of a run",
		Long: `List, compare and restore the snapshots of a run. A turn is a completed call of a role that outputs
changes. Each turn leaves a snapshot: the whole working tree at its end. Turn 0 is the start of the run. A numeric first
argument is a turn and not a run. No server is needed.`,
	})
	cmd.AddCommand(a.snapshotList(), a.snapshotDiff(), a.snapshotCheckout())
	return cmd
}

func (a *app) snapshotList() *cobra.Command {
	const short = "List the turns of a run with call, role, changes, tree and cost"
	return offline(a, "list", short, api.SnapshotsOf, a.printSnapshots)
}

func (a *app) printSnapshots(lines []api.Snapshot) {
	if len(lines) == 0 {
		fmt.Fprintln(a.out, "No turn yet: each completed call of a role that outputs changes is a turn.")
		return
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TURN\tROLE\tCALL\tCHANGED\tTREE\tCOST\tOUTCOME")
	for _, l := range lines {
		outcome := l.Outcome
		if l.Abandoned {
			outcome += ", reverted"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%.12s\t%s\t%s\n",
			l.Turn, l.Role, callOf(l.Call), l.Changed, l.Tree, run.ShortCost(l.USD, l.Unknown), outcome)
	}
	w.Flush()
}

// callOf returns the id of a call without the id of the run.
func callOf(id string) string {
	if _, rest, ok := strings.Cut(id, "/"); ok {
		return rest
	}
	return id
}

// onTurns completes a verb that takes a run and turns.
func (a *app) onTurns(
	cmd *cobra.Command, do func(ctx context.Context, s *operations.Snapshots, args []string) error,
) *cobra.Command {
	var dir string
	cmd.Flags().StringVar(&dir, "output-dir", "", "the run directory, instead of naming the run")
	cmd.Long = cmd.Short + ". No server is needed."
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		run := dir
		if dir == "" && len(args) > 0 {
			if _, err := strconv.Atoi(args[0]); err != nil {
				run, args = args[0], args[1:]
			}
		}
		if len(args) == 0 {
			return asUsage(errors.New("name a turn by its number; to list the turns, run: starter snapshot list"))
		}
		d, err := a.find(run)
		if err != nil {
			return err
		}
		s, err := operations.OpenSnapshots(cmd.Context(), d)
		if err != nil {
			return err
		}
		return do(cmd.Context(), s, args)
	}
	return cmd
}

// turnOf parses the number of a turn.
func turnOf(arg string) (int, error) {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 0 {
		return 0, asUsage(fmt.Errorf("%q is not the number of a turn", arg))
	}
	return n, nil
}

func (a *app) snapshotDiff() *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use: "diff [RUN] N [M]", Short: "Show what turn N changed, or compare the trees of turns N and M",
		Args:    between(1, 3),
		PreRunE: func(*cobra.Command, []string) error { return o.oneForm() },
	}
	o.flags(cmd)
	return a.onTurns(cmd, func(ctx context.Context, s *operations.Snapshots, args []string) error {
		from, to, err := treesOf(s, args)
		if err != nil {
			return err
		}
		c, drop, err := s.Compare(ctx, from, to)
		if err != nil {
			return err
		}
		return errors.Join(a.printComparison(ctx, c, o), drop())
	})
}

// treesOf returns the two trees to compare.
func treesOf(s *operations.Snapshots, args []string) (from, to string, err error) {
	n, err := turnOf(args[0])
	if err != nil {
		return "", "", err
	}
	one, err := s.Turn(n)
	if err != nil {
		return "", "", err
	}
	if len(args) == 1 && n == 0 {
		return "", "", asUsage(errors.New("turn 0 is the start of the run: name a second turn to compare it with"))
	}
	if len(args) == 1 {
		return one.Before, one.Tree, nil
	}
	m, err := turnOf(args[1])
	if err != nil {
		return "", "", err
	}
	other, err := s.Turn(m)
	return one.Tree, other.Tree, err
}

func (a *app) snapshotCheckout() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "checkout [RUN] N DIR", Short: "Restore the tree after turn N into an empty or new folder",
		Args: between(2, 3),
	}
	cmd.Flags().BoolVar(&force, "force",
		false, "use a folder that is not empty; files that are not in the snapshot are deleted")
	asJSON := jsonFlag(cmd)
	return a.onTurns(cmd, func(ctx context.Context, s *operations.Snapshots, args []string) error {
		if len(args) != 2 {
			return asUsage(errors.New("name the turn and the folder: starter snapshot checkout [RUN] N DIR"))
		}
		n, err := turnOf(args[0])
		if err != nil {
			return err
		}
		v, err := s.Checkout(ctx, n, args[1], force)
		if err != nil {
			return err
		}
		dir, err := filepath.Abs(args[1])
		if err != nil {
			return err
		}
		return show(a, *asJSON, CheckoutReport{Turn: n, Tree: v.Tree, Dir: dir}, func(r CheckoutReport) {
			fmt.Fprintf(a.out, "%s holds the tree of turn %d\n", r.Dir, r.Turn)
		})
	})
}

// between requires a number of arguments.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return asUsage(fmt.Errorf("wrong number of arguments; usage: starter %s",
				strings.TrimPrefix(cmd.UseLine(), cmd.Root().Name()+" ")))
		}
		return nil
	}
}

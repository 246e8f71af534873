package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/store"
)

func (a *app) store() *cobra.Command {
	cmd := within(&cobra.Command{Use: "store", Short: "Manage the store of blobs"})
	cmd.AddCommand(a.storeGC())
	return cmd
}

func (a *app) storeGC() *cobra.Command {
	var c operations.Collection
	cmd := &cobra.Command{
		Use: "gc", Short: "Show what no run needs, and delete it with --delete", Args: cobra.NoArgs,
		Long: `Find what no run needs in the store: data that no journal, call or checkpoint refers to, directly or
indirectly. Runs are searched where this machine remembers them, in run_root, and below --runs. Without --delete
nothing is changed.

Nothing is deleted that is younger than --older-than, or that was written after the last event of an open run. If the
directory of a run is missing, its calls, checkpoints and journal are kept, and, unless the run had finished,
everything since its start; starter remove RUN releases them. Nothing at all is deleted while the store has data of an
unknown run without a directory, or while a reference cannot be read.`,
	}
	cmd.Flags().BoolVar(&c.Delete, "delete", false, "delete it")
	cmd.Flags().DurationVar(&c.OlderThan, "older-than", 24*time.Hour, "minimum age of deleted data")
	cmd.Flags().StringArrayVar(&c.Roots, "runs", nil, "a folder with more run directories (may be repeated)")
	cmd.Flags().StringArrayVar(&c.Forget, "forget", nil,
		"the id of a run whose directory was deleted (may be repeated)")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.OlderThan < 0 {
			return asUsage(errors.New("--older-than must be 0 or more, as in 24h"))
		}
		s, err := store.Open(cmd.Context(), a.settings.Store)
		if err != nil {
			return err
		}
		c.StateDir, c.Now = a.settings.StateDir, time.Now()
		c.Roots = append(c.Roots, a.settings.RunRoot)
		out, err := operations.Collect(cmd.Context(), s, c)
		var refused *operations.RefusedError
		if err != nil && !errors.As(err, &refused) {
			return err
		}
		if *asJSON {
			return errors.Join(a.json(out), err)
		}
		a.printCollected(out)
		return err
	}
	return cmd
}

// shownGarbage is how many objects are listed; --json has all.
const shownGarbage = 20

func (a *app) printCollected(c operations.Collected) {
	fmt.Fprintf(a.out, "Store %s, for %d runs\n", c.Store, len(c.Runs))
	for _, u := range c.Unknown {
		where := ""
		if u.Missing != "" {
			where = "; it was in " + u.Missing
		}
		fmt.Fprintf(a.out, "  not found: run %s (%d names, %d segments%s)\n", u.RunID, u.Names, u.Segments, where)
		if !u.Blocks {
			fmt.Fprintf(a.out, "    what the store has of it is kept; if it is gone for good: %s remove %s\n",
				program(), u.RunID)
		}
	}
	for _, b := range c.Broken {
		fmt.Fprintf(a.out, "  cannot be read: %s\n", b)
	}
	if c.HeldBy != "" {
		fmt.Fprintf(a.out, "  run %s is open: what was written after %s is kept\n",
			c.HeldBy, c.Before.Local().Format(time.DateTime))
	}
	for _, o := range c.Objects[:min(len(c.Objects), shownGarbage)] {
		fmt.Fprintf(a.out, "  %9s  %s  %s\n", size(o.Size), o.Written.Local().Format(time.DateTime), o.Name)
	}
	if more := len(c.Objects) - shownGarbage; more > 0 {
		fmt.Fprintf(a.out, "  and %d more\n", more)
	}
	fmt.Fprintf(a.out, "Needed: %s. Not needed, but recent: %s. Not needed: %s.\n",
		amount(c.Kept), amount(c.Fresh), amount(c.Garbage))
	switch {
	case c.Deleted:
		fmt.Fprintf(a.out, "Deleted: %s.\n", amount(c.Removed))
	case c.Garbage.Objects > 0:
		fmt.Fprintf(a.out, "Nothing was changed. To delete what is not needed: %s store gc --delete\n", program())
	}
}

func amount(a operations.Amount) string {
	return fmt.Sprintf("%d objects, %s", a.Objects, size(a.Bytes))
}

// size formats bytes.
func size(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/(1<<10), "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB"} {
		if v < 1<<10 {
			break
		}
		v, unit = v/(1<<10), next
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}

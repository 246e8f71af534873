package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/costs"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

func (a *app) costs() *cobra.Command {
	var since, by string
	cmd := &cobra.Command{
		Use: "costs", Short: "Show what the calls of this host cost", Args: cobra.NoArgs,
		Long: `Show what the calls of all runs on this host cost, from the ledger in the state directory. Calls of other
hosts are not included. A call counts on the day on which it began, in the time zone of this host. No server is needed.

Exact costs, lower bounds (at least) and calls without a known cost are shown separately. starter cost-report shows the
costs of one run.

` + exitCodesHelp,
		Example: "  starter costs --since 30d --by model\n  starter costs --since 2026-11-01 --by pipeline --json",
	}
	cmd.Flags().StringVar(&since, "since", "7d", "only calls since: "+momentForms+"; days begin at midnight")
	cmd.Flags().StringVar(&by, "by", costs.ByDay, "one row for each "+strings.Join(costs.Groups(), ", "))
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !slices.Contains(costs.Groups(), by) {
			return asUsage(fmt.Errorf("--by %s: write one of %s%s", by, strings.Join(costs.Groups(), ", "),
				didYouMean(by, costs.Groups())))
		}
		from, err := daysOf("--since", since, time.Now().In(zone()))
		if err != nil {
			return asUsage(err)
		}
		l, err := a.ledger()
		if err == nil {
			err = l.CountEnded(cmd.Context(), from)
		}
		if err != nil {
			return err
		}
		r := hostCosts{}
		if r.Summary, err = l.Summarize(from, by); err == nil {
			r.PerDay, err = a.perDay(l)
		}
		if err != nil {
			return err
		}
		if err := show(a, *asJSON, r, a.printHostCosts); err != nil || len(r.Damage) == 0 {
			return err
		}
		return silentExit(exitAttention)
	}
	return cmd
}

// hostCosts is the output of `costs --json`.
type hostCosts struct {
	costs.Summary
	PerDay *perDay `json:"per_day"` // null: there is no budget
}

// perDay is the budget of a day, and what the calls of today use.
type perDay struct {
	Budget costs.Budget `json:"budget"`
	costs.Day
}

// perDay returns the budget of the day; nil: the settings have none.
func (a *app) perDay(l *costs.Ledger) (*perDay, error) {
	b := costs.Budget(a.settings.PerDay)
	if !b.Set() {
		return nil, nil
	}
	d, err := l.Today()
	return &perDay{Budget: b, Day: d}, err
}

// Text describes the use of the budget: $3.20 of $10.00, until 2026-11-26 00:00 (Europe/Berlin).
func (p perDay) Text() string {
	return fmt.Sprintf("%s; the next day begins at %s (%s)", p.Day.Text(p.Budget), p.Until.Format("2006-01-02 15:04"),
		p.Zone)
}

// dayText describes the use of the budget of the day; empty: there is none, or the run is closed.
func (a *app) dayText(s run.State) string {
	if s.Status.Closed() || !costs.Budget(a.settings.PerDay).Set() {
		return ""
	}
	l, err := a.ledger()
	if err != nil {
		return err.Error()
	}
	p, err := a.perDay(l)
	if err != nil {
		return err.Error()
	}
	return "all runs: " + p.Text()
}

// showDay prints the budget of the day.
func (a *app) showDay(ctx context.Context) error {
	l, err := a.ledger()
	if err != nil {
		return err
	}
	p, err := a.perDay(l)
	if err != nil {
		return err
	}
	if p == nil {
		return asUsage(errors.New("name the budget to set, as in --usd 50; the settings have no per_day, a budget of " +
			"all runs of this host for each day, which starter budget would show"))
	}
	if err := l.CountEnded(ctx, p.From); err != nil {
		return err
	}
	if p, err = a.perDay(l); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "Budget of today (per_day in the settings): %s\n", p.Text())
	return nil
}

// ledger opens the ledger of costs of this host.
func (a *app) ledger() (*costs.Ledger, error) {
	host, err := local.ReadHostID(a.settings.StateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without an id no call was made
		return nil, err
	}
	return costs.Open(a.settings.StateDir, host, costs.Options{Open: operations.OpenStore, Zone: zone()}), nil
}

// daysOf parses --since as momentOf does; an age in days begins at the midnight of the first day.
func daysOf(flag, text string, now time.Time) (time.Time, error) {
	t, err := momentOf(flag, text, now)
	if err == nil && strings.HasSuffix(text, "d") {
		y, m, d := t.Date()
		t = time.Date(y, m, d, 0, 0, 0, 0, now.Location())
	}
	return t, err
}

func (a *app) printHostCosts(s hostCosts) {
	from, err := time.Parse(run.TimeFormat, s.Since)
	if err != nil {
		from = time.Time{}
	}
	fmt.Fprintf(a.out, "Costs of the calls of this host since %s (%s)\n\n", from.In(zone()).Format("2006-01-02 15:04"),
		s.Zone)
	if s.Total.Calls == 0 {
		fmt.Fprintln(a.out, "No call has completed.")
	} else {
		a.printCostLines(s.Summary)
	}
	if n := s.Running.Calls; n > 0 {
		fmt.Fprintf(a.out, "\nRunning, and not included: %s", run.Plural(n, "call"))
		if s.Running.USD > 0 {
			fmt.Fprintf(a.out, ", $%.2f reserved", s.Running.USD)
		}
		fmt.Fprintln(a.out)
	}
	if s.PerDay != nil {
		fmt.Fprintf(a.out, "\nBudget of today: %s\n", s.PerDay.Text())
	}
	for _, d := range s.Damage {
		fmt.Fprintf(a.out, "\n! %s\n", d.Text())
	}
}

func (a *app) printCostLines(s costs.Summary) {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\tcalls\ttokens\texact\tat least\tunknown\tcost\t\n", s.By)
	for _, l := range append(slices.Clone(s.Rows), s.Total) {
		atLeast, unknown, mark := "", "", ""
		if l.AtLeastCalls > 0 {
			atLeast = fmt.Sprintf("$%.2f (%s)", l.AtLeastUSD, run.Plural(l.AtLeastCalls, "call"))
		}
		if l.UnknownCalls > 0 {
			unknown = run.Plural(l.UnknownCalls, "call")
		}
		if l.EstimatedUSD > 0 {
			mark = " (" + usd(l.EstimatedUSD) + " estimated)"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t$%.2f\t%s\t%s\t%s%s\t\n", l.Name, l.Calls, l.Tokens.Sum(), l.ExactUSD,
			cmp.Or(atLeast, "-"), cmp.Or(unknown, "-"), run.ShortCost(l.USD, l.AtLeastCalls+l.UnknownCalls), mark)
	}
	w.Flush()
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/passbook-run/passbook/internal/costs"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// dayText describes the use of the budget of the day; empty: there is none, or the run is closed.
func (a *app) dayText(s run.State) string {
	if s.Status.Closed() || !costs.Budget(a.settings.PerDay).Set() {
		return ""
	}
	l, err := a.ledger()
	if err != nil {
		return err.Error()
	}
	text, err := a.usedToday(l)
	if err != nil {
		return err.Error()
	}
	return "all runs: " + text
}

// showDay prints the budget of the day.
func (a *app) showDay(ctx context.Context) error {
	if !costs.Budget(a.settings.PerDay).Set() {
		return asUsage(errors.New("name the budget to set, as in --usd 50; the settings have no per_day, a budget of " +
			"all runs of this host for each day, which starter budget would show"))
	}
	l, err := a.ledger()
	if err != nil {
		return err
	}
	day, err := l.Today()
	if err == nil {
		err = l.CountEnded(ctx, day.From)
	}
	if err != nil {
		return err
	}
	text, err := a.usedToday(l)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "Budget of today (per_day in the settings): %s\n", text)
	return nil
}

// usedToday describes the use of the budget of the day: $3.20 of $10.00; the next day begins at 2026-11-26 00:00 (CET).
func (a *app) usedToday(l *costs.Ledger) (string, error) {
	day, err := l.Today()
	return fmt.Sprintf("%s; the next day begins at %s (%s)", day.Text(costs.Budget(a.settings.PerDay)),
		day.Until.Format("2006-01-02 15:04"), day.Zone), err
}

// ledger opens the ledger of costs of this host.
func (a *app) ledger() (*costs.Ledger, error) {
	host, err := local.ReadHostID(a.settings.StateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without an id no call was made
		return nil, err
	}
	return costs.Open(a.settings.StateDir, host, costs.Options{Open: operations.OpenStore, Zone: zone()}), nil
}

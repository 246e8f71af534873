package cli

import (
	"errors"
	"fmt"

	"github.com/passbook-run/passbook/internal/agent/gate"
	"github.com/passbook-run/passbook/run"
)

// dayText describes the use of the budget of the day; empty: there is none, or the run is closed.
func (a *app) dayText(s run.State) string {
	if s.Status.Closed() || !gate.Budget(a.settings.PerDay).Set() {
		return ""
	}
	text, err := a.usedToday()
	if err != nil {
		return err.Error()
	}
	return "all runs: " + text
}

// showDay prints the budget of the day.
func (a *app) showDay() error {
	if !gate.Budget(a.settings.PerDay).Set() {
		return asUsage(errors.New("name the budget to set, as in --usd 50; the settings have no per_day, a budget of " +
			"all runs of this host for each day, which starter budget would show"))
	}
	text, err := a.usedToday()
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "Budget of today (per_day in the settings): %s\n", text)
	return nil
}

// usedToday describes the use of the budget of the day: $3.20 of $10.00; the next day begins at 2026-11-26 00:00 (CET).
func (a *app) usedToday() (string, error) {
	day, err := gate.Open(a.settings.StateDir, "", gate.Options{Zone: zone()}).Today()
	return fmt.Sprintf("%s; the next day begins at %s (%s)", day.Text(gate.Budget(a.settings.PerDay)),
		day.Until.Format("2006-01-02 15:04"), day.Zone), err
}

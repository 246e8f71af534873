package doctor

import (
	"errors"
	"io/fs"
	"time"

	"github.com/passbook-run/passbook/internal/costs"
	"github.com/passbook-run/passbook/internal/local"
)

// costs checks the ledger of this host, and the budget of the day.
func (e *examiner) costs() {
	const area, recent = "costs", 7 * 24 * time.Hour
	host, err := local.ReadHostID(e.Settings.StateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return // the disks report it
	}
	l, b := costs.Open(e.Settings.StateDir, host, costs.Options{}), costs.Budget(e.Settings.PerDay)
	damages, err := l.Damages(time.Now().Add(-recent))
	var day costs.Day
	if err == nil {
		day, err = l.Today()
	}
	if err != nil {
		e.add(Problem, area, "ledger", "calls wait until it can be read; restore it from a backup, or move it away", "%v",
			err)
		return
	}
	for _, d := range damages {
		e.add(Warning, area, "ledger", "", "%s", d.Text())
	}
	if !b.Set() {
		return
	}
	if day.Spent(b) {
		e.add(Warning, area, "budget of today", "wait, or raise per_day in the settings and restart the worker: "+
			e.typed("server stop")+", "+e.typed("server start"), "it is used up, and calls wait until %s (%s): %s",
			when(day.Until), day.Zone, day.Text(b))
		return
	}
	e.ok(area, "budget of today", "%s, until %s (%s)", day.Text(b), when(day.Until), day.Zone)
}

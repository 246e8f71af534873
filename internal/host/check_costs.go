package host

import (
	"errors"
	"time"

	"github.com/passbook-run/passbook/internal/agent/gate"
)

// costs checks the gate of this host, and the budget of the day.
func (e *examiner) costs() {
	const area, recent = "costs", 7 * 24 * time.Hour
	g, b := gate.Open(e.Settings.StateDir, "", gate.Options{}), gate.Budget(e.Settings.PerDay)
	for _, path := range g.Damaged(time.Now().Add(-recent)) {
		e.add(Warning, area, "gate", "", "its file was damaged, and was made again from the calls of the stores; only costs of "+
			"removed runs may be missing. The damaged file is %s", path)
	}
	day, err := g.Today()
	if damage := (*gate.DamageError)(nil); errors.As(err, &damage) {
		e.add(Warning, area, "gate", "", "%v", err)
		return
	}
	if err != nil {
		e.add(Problem, area, "gate", "calls wait until it can be read", "%v", err)
		return
	}
	if !b.Set() {
		return
	}
	if day.Unread != "" {
		e.add(Warning, area, "gate", "", "%s", day.Unread)
	}
	if day.Spent(b) {
		e.add(Warning, area, "budget of today", "wait, or raise per_day in the settings and restart the worker: "+
			e.typed("server stop")+", "+e.typed("server start"), "it is used up, and calls wait until %s (%s): %s",
			when(day.Until), day.Zone, day.Text(b))
		return
	}
	e.ok(area, "budget of today", "%s, until %s (%s)", day.Text(b), when(day.Until), day.Zone)
}

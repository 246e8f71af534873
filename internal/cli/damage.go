package cli

import (
	"fmt"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// damageLines describes the damage that the journal records, or why it is unknown.
func damageLines(d rundir.Dir, s run.State) []string {
	all, err := d.Damage(s)
	if err != nil {
		return []string{fmt.Sprintf("The journal records damage, and whether it was repaired is unknown: %v", err)}
	}
	var lines []string
	for _, r := range all {
		lines = append(lines, "Damage: "+r.String())
	}
	if view.Unrepaired(all) {
		lines = append(lines, fmt.Sprintf("Repair it after the run has finished: %s repair-state %s --apply",
			program(), shell.Quote(d.Root)))
	}
	return lines
}

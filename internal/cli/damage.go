package cli

import (
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// unrepaired reports whether damage that the journal records has not been repaired.
func unrepaired(all []run.JournalDamage) bool {
	return slices.ContainsFunc(all, func(d run.JournalDamage) bool { return !d.Repaired })
}

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
	if unrepaired(all) {
		lines = append(lines, fmt.Sprintf("Repair it after the run has finished: %s repair-state %s --apply",
			program(), shell.Quote(d.Root)))
	}
	return lines
}

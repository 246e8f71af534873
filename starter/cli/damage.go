package cli

import (
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// unrepaired says that damage which the journal records is still there.
func unrepaired(all []run.JournalDamage) bool {
	return slices.ContainsFunc(all, func(d run.JournalDamage) bool { return !d.Repaired })
}

// damageLines are what the verbs say of damage that the journal records. What cannot be read of it is named too.
func damageLines(d rundir.Dir, s run.State) []string {
	all, err := d.Damage(s)
	if err != nil {
		return []string{fmt.Sprintf("The journal records damage, and whether it is still there is not known: %v", err)}
	}
	var lines []string
	for _, r := range all {
		lines = append(lines, "Damage: "+r.String())
	}
	if unrepaired(all) {
		lines = append(lines, fmt.Sprintf("Repair it once the run is over: %s repair-state %s --apply", program(), shell.Quote(d.Root)))
	}
	return lines
}

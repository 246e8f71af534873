package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryStatusHasARow compares the constants of type Status with the rows of the table, and checks that no row lacks
// a required field.
func TestEveryStatusHasARow(t *testing.T) {
	require.Empty(t, incompleteStatuses(declared[Status](t, "Status"), statuses))
}

func incompleteStatuses(names map[Status]string, rows []statusRow) []string {
	var found []string
	seen := map[Status]bool{}
	for _, r := range rows {
		if seen[r.status] {
			found = append(found, string(r.status)+" has two rows")
		}
		seen[r.status] = true
		if names[r.status] == "" {
			found = append(found, string(r.status)+" has no constant")
		}
		for field, lacks := range map[string]bool{
			"class": r.class == "", "rfc": r.rfc == "", "means": r.means == "", "advice": r.advice == "",
			"color": r.color == ColorNone && r.status != Unknown, "operations": len(r.allows.always) == 0,
		} {
			if lacks {
				found = append(found, string(r.status)+" has no "+field)
			}
		}
	}
	for s, name := range names {
		if !seen[s] {
			found = append(found, name+" has no row")
		}
	}
	return found
}

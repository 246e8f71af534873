package run

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryStatusHasARow compares the constants of type Status with the rows of the table, and checks that no row lacks
// a required field.
func TestEveryStatusHasARow(t *testing.T) {
	var rows []Status
	for _, r := range statuses {
		rows = append(rows, r.status)
		for field, value := range map[string]string{
			"class": string(r.class), "rfc": r.rfc, "means": r.means, "advice": r.advice,
		} {
			require.NotEmpty(t, value, "%s has no %s", r.status, field)
		}
		require.Equal(t, r.status == Unknown, r.color == ColorNone, "color of %s", r.status)
		require.NotEmpty(t, r.allows.always, "operations of %s", r.status)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(declared[Status](t, "Status"))), rows)
}

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

// The check reports each fault that a new status may bring.
func TestIncompleteStatusesAreReported(t *testing.T) {
	whole := statusRow{
		status: "planted", class: Live, rfc: "running", color: ColorLive, means: "It is there.", advice: "Go away.",
		allows: allowed{always: []Operation{Cancel}},
	}
	type rows = map[string]struct {
		change func(*statusRow)
		want   []string
	}
	for name, row := range (rows{
		"nothing":       {func(*statusRow) {}, nil},
		"no class":      {func(r *statusRow) { r.class = "" }, []string{"planted has no class"}},
		"no rfc":        {func(r *statusRow) { r.rfc = "" }, []string{"planted has no rfc"}},
		"no color":      {func(r *statusRow) { r.color = ColorNone }, []string{"planted has no color"}},
		"no means":      {func(r *statusRow) { r.means = "" }, []string{"planted has no means"}},
		"no advice":     {func(r *statusRow) { r.advice = "" }, []string{"planted has no advice"}},
		"no operations": {func(r *statusRow) { r.allows = allowed{} }, []string{"planted has no operations"}},
		"no constant": {
			func(r *statusRow) { r.status = "other" },
			[]string{"Planted has no row", "other has no constant"},
		},
	}) {
		t.Run(name, func(t *testing.T) {
			r := whole
			row.change(&r)
			names := map[Status]string{"planted": "Planted"}
			require.ElementsMatch(t, row.want, incompleteStatuses(names, []statusRow{r}))
		})
	}
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

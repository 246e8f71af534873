package operations

import (
	"cmp"
	"slices"
)

// Branch is a run with the runs made from it.
type Branch struct {
	Row
	Branches []Branch `json:"branches"` // oldest first; never nil
}

// Lineage arranges the runs of one lineage in a tree. A run whose source is missing, because its directory and
// workflow no longer exist, is at the top.
func Lineage(rows []Row) []Branch {
	known := map[string]bool{}
	for _, r := range rows {
		known[r.RunID] = true
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(x, y Row) int {
		return cmp.Or(cmp.Compare(x.StartedAt, y.StartedAt), cmp.Compare(x.RunID, y.RunID))
	})
	var under func(source string, above []string) []Branch
	under = func(source string, above []string) []Branch {
		out := []Branch{}
		for _, r := range rows {
			mine := r.Source == source || source == "" && !known[r.Source]
			if mine && !slices.Contains(above, r.RunID) { // a forged source cannot make a cycle
				out = append(out, Branch{Row: r, Branches: under(r.RunID, append(slices.Clip(above), r.RunID))})
			}
		}
		return out
	}
	return under("", nil)
}

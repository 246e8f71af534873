package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocsShowTheTargets compares the page with the table, cell by cell.
func TestDocsShowTheTargets(t *testing.T) {
	const page, from, to = "../../docs/run-directory.md",
		"<!-- targets: written by go test ./internal/cli -run TestDocsShowTheTargets -update -->\n",
		"<!-- end of targets -->\n"
	columns := map[string]int{} // of verbs that treat all targets alike, the first
	var shown []int
	var heads []string
	for i, v := range targetVerbs {
		column := ""
		for _, row := range targetTable {
			column += string(row.does[i]) + "|"
		}
		if first, seen := columns[column]; seen {
			heads[slices.Index(shown, first)] += ", " + v.doc
			continue
		}
		columns[column] = i
		shown, heads = append(shown, i), append(heads, v.doc)
	}
	want := "| target | " + strings.Join(heads, " | ") + " |\n|" + strings.Repeat("---|", len(shown)+1) + "\n"
	same := map[[8]deed][]string{} // targets that are treated alike have one row
	for _, row := range targetTable {
		same[row.does] = append(same[row.does], row.target)
	}
	for _, row := range targetTable {
		if row.target == same[row.does][0] {
			want += "| " + strings.Join(same[row.does], "; ") + " |"
			for _, i := range shown {
				want += " " + string(row.does[i]) + " |"
			}
			want += "\n"
		}
	}
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, begins := strings.Cut(string(raw), from)
	have, tail, ends := strings.Cut(rest, to)
	require.True(t, begins && ends, "the marks of the table are gone from %s", page)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(head+from+want+to+tail), 0o644))
		return
	}
	require.Equal(t, want, have)
}

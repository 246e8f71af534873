package pipeline

import (
	"fmt"
	"strings"
)

// suggest proposes the known word closest to word, or lists them all.
func suggest(word string, known []string) string {
	best, distance := "", len(word)/3+2
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %q?", best)
	case len(known) == 0:
		return "there is none to choose from"
	default:
		return "write one of: " + strings.Join(known, ", ")
	}
}

// editDistance is the Levenshtein distance over bytes.
func editDistance(a, b string) int {
	if len(a) > maxName || len(b) > maxName {
		return len(a) + len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal + btoi(a[i-1] != b[j-1])
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

package pipeline

import (
	"slices"
	"strings"
)

// suggest proposes the known words closest to word, or lists them all.
func suggest(word string, known []string) string {
	near := Nearest(word, known)
	switch {
	case len(near) > 0:
		return `did you mean "` + strings.Join(near, `" or "`) + `"?`
	case len(known) == 0:
		return "there is none to choose from"
	default:
		return "write one of: " + strings.Join(known, ", ")
	}
}

// Nearest returns at most three words that a mistyped one may mean: words that it begins, or the nearest of those with
// at most two typing errors; one for a short word.
func Nearest(word string, words []string) []string {
	type near struct {
		word  string
		slips int
	}
	var found []near
	low := strings.ToLower(word)
	for _, w := range words {
		n := slips(low, strings.ToLower(w))
		if len(low) > 1 && strings.HasPrefix(strings.ToLower(w), low) {
			n = 1
		}
		if n <= min(2, len(low)/3+1) {
			found = append(found, near{w, n})
		}
	}
	slices.SortStableFunc(found, func(x, y near) int { return x.slips - y.slips })
	var out []string
	for _, f := range found[:min(3, len(found))] {
		if f.slips == found[0].slips {
			out = append(out, f.word)
		}
	}
	return out
}

// slips returns the number of inserted, missing, replaced or swapped letters between two words. Of words that differ by
// more than three letters in length, which may be those of a whole file, it is at least that.
func slips(a, b string) int {
	x, y := []rune(a), []rune(b)
	if d := len(x) - len(y); max(d, -d) > 3 {
		return max(d, -d)
	}
	before, last := make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row := make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(y)]
}

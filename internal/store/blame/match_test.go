package blame

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMatch(t *testing.T) {
	for name, row := range map[string]struct {
		old, next string
		want      []int
	}{
		"nothing":               {"", "", []int{}},
		"all new":               {"", "ab", []int{-1, -1}},
		"all gone":              {"ab", "", []int{}},
		"the same":              {"abc", "abc", []int{0, 1, 2}},
		"one in the middle":     {"abc", "axc", []int{0, -1, 2}},
		"one more at the end":   {"ab", "abc", []int{0, 1, -1}},
		"one more at the front": {"ab", "xab", []int{-1, 0, 1}},
		"one less":              {"abcd", "abd", []int{0, 1, 3}},
		"exchanged":             {"ab", "ba", []int{1, -1}},
		"the example of Myers":  {"abcabba", "cbabac", []int{2, -1, 3, 4, 6, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, row.want, match(letters(row.old), letters(row.next)))
		})
	}
}

func letters(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "")
}

func TestVeryDifferentTextsAreReplacedInTheMiddle(t *testing.T) {
	var old, next []string
	for i := range 3 * mostEdits {
		old, next = append(old, "old "+string(rune(i))), append(next, "new "+string(rune(i)))
	}
	old, next = append(old, "end"), append(next, "end")
	got := match(append([]string{"begin"}, old...), append([]string{"begin"}, next...))
	require.Equal(t, 0, got[0])
	require.Equal(t, len(old), got[len(got)-1])
	require.Equal(t, -1, got[len(got)/2])
}

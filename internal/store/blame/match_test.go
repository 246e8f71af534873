package blame

import (
	"math/rand"
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
		"Myers's own":           {"abcabba", "cbabac", []int{2, -1, 3, 4, 6, -1}},
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

// TestMatchIsALongestCommonSubsequence compares with the table of all pairs, which anybody can check.
func TestMatchIsALongestCommonSubsequence(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	text := func() []string {
		out := make([]string, random.Intn(12))
		for i := range out {
			out[i] = string(rune('a' + random.Intn(3)))
		}
		return out
	}
	for range 20000 {
		old, next := text(), text()
		got, last, n := match(old, next), -1, 0
		for i, from := range got {
			if from < 0 {
				continue
			}
			require.Greater(t, from, last)
			require.Equal(t, old[from], next[i])
			last, n = from, n+1
		}
		require.Equal(t, longest(old, next), n, "%v %v", old, next)
	}
}

func longest(a, b []string) int {
	n := make([][]int, len(a)+1)
	for i := range n {
		n[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if n[i][j] = max(n[i+1][j], n[i][j+1]); a[i] == b[j] {
				n[i][j] = 1 + n[i+1][j+1]
			}
		}
	}
	return n[0][0]
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

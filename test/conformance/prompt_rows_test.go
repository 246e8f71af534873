package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// promptRows are the prompts of agents.
func promptRows() rows {
	return rows{
		"PX-01": func(t *testing.T) {
			config := example("pipeline.yaml")
			first := starter(t, "plan", "--json", config)
			require.Equal(t, first, starter(t, "plan", "--json", config))
			require.Equal(t, starter(t, "plan", config), starter(t, "plan", config))
			require.Contains(t, first, `"total": 56`)
		},
		"PX-02": func(t *testing.T) {
			seen := map[float64]bool{}
			for _, c := range where(demoRun.get(t).calls, "event", "start") {
				require.False(t, seen[c.number(t, "pid")], "a process was called twice")
				seen[c.number(t, "pid")] = true
			}
			require.Len(t, seen, 70)
			claudeRun.get(t)
			for _, call := range claudeCalls(t) {
				for _, arg := range call.list(t, "argv") {
					require.NotRegexp(t, `resume|continue|session-id`, arg, "a session is resumed")
				}
			}
		},
		"PX-03": testPromptOrder,
		"PX-04": func(t *testing.T) {
			r := demoRun.get(t)
			for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8} {
				for _, verifier := range []int{2, 5} {
					report := strings.TrimSpace(string(r.file(t, passDir(verifier)+"raw-output.txt")))
					require.Equal(t, n == verifier+1, strings.Contains(r.prompt(t, n), report),
						"pass %d and the report of pass %d", n, verifier)
				}
			}
		},
		"PX-05": func(t *testing.T) {
			prompt := demoRun.get(t).prompt(t, 56)
			notes, _, ok := strings.Cut(prompt[strings.Index(prompt, "\n## conviction\n"):], "\n## discovery\n")
			require.True(t, ok)
			require.Equal(t, 55, count(notes, "^## Pass "))
			for n := 1; n <= 55; n++ {
				require.Contains(t, notes, fmt.Sprintf("\n## Pass %d (", n))
			}
		},
	}
}

// testPromptOrder requires the parts of each prompt in their order.
func testPromptOrder(t *testing.T) {
	r := demoRun.get(t)
	for n := 1; n <= 56; n++ {
		prompt := r.prompt(t, n)
		parts := []string{"# DETERMINISTIC ORCHESTRATOR — ", "\n## World Description\n", "\n## Design Tokens\n"}
		if n > 1 {
			parts = append(parts, "\n# What earlier passes left behind\n", "\n## conviction\n", "\n## discovery\n")
		}
		if in := (n - 1) % 8; in == 2 || in == 5 {
			parts = append(parts, "\n# What came before\n")
		}
		parts = append(parts, "\n# The artifact as it is now\n")
		for i, label := range labelsOf(n) {
			parts = append(parts, fmt.Sprintf("\n## [%d/5] %s", i+1, label))
		}
		parts = append(parts, "\n## Content\n", taskOf(t, n))
		at := 0
		for _, part := range parts {
			where := strings.Index(prompt[at:], part)
			require.GreaterOrEqual(t, where, 0, "pass %d: %q is missing, or comes too early", n, part)
			at += where
		}
		require.Contains(t, prompt, fmt.Sprintf("## [1/5] %s (PRIMACY POSITION)", labelsOf(n)[0]))
		require.Equal(t, 1, strings.Count(prompt, "(PRIMACY POSITION)"))
		require.Equal(t, n > 1, strings.Contains(prompt, "# What earlier passes left behind"))
	}
}

// taskOf returns the first line of the prompt file of a pass's role.
func taskOf(t *testing.T, n int) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(example("prompts"), roleOf(n)+".md"))
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(raw), "\n")
	return line
}

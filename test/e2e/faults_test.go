package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// recoverable is every fault that a later attempt, a redelivery or the reply itself makes good.
const recoverable = `
- {at: 2, do: exit, code: 1, stderr: "Connection reset by peer"}
- {at: 3, attempt: 1-4, do: rate_limit}
- {at: 4, do: hang}
- {at: 5, do: no_sections}
- {at: 6, do: truncate}
- {at: 7, do: empty}
- {at: 8, do: bad_json}
- {at: 9, do: is_error, text: "overloaded_error"}
- {at: 10, do: slow, seconds: 1}
- {at: 11, do: no_html}
- {at: 12, do: kill_engine, when: before}
- {at: 14, do: kill_engine, when: after}
- {at: auditor-B-1, do: exit}
- {at: weaver-1, do: rate_limit}
- {at: refine-1, do: truncate}
`

// variant is the small example with some texts replaced, in a folder of its own.
func (h *environment) variant(pairs ...string) string {
	h.t.Helper()
	folder := h.copyExample()
	for i := 0; i < len(pairs); i += 2 {
		replace(h.t, folder, "corpus-tiny.yaml", pairs[i], pairs[i+1])
	}
	return filepath.Join(folder, "corpus-tiny.yaml")
}

// TestEveryRecoverableFaultAtOnce ends with the page of a run that met none of them, and every fault stands in its
// books as recovered.
func TestEveryRecoverableFaultAtOnce(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(recoverable)
	dir := h.dir("run")
	h.starter("run", "--config", h.variant("timeout: 10m ", "timeout: 2s "), "--output-dir", dir)
	complete(t, dir)
	require.Equal(t, foretell(t, tiny()).artifact(), artifactOf(t, dir))
	h.sound(dir)
	h.noAgents()
	seen := map[string]bool{}
	for _, e := range stateOf(t, dir).ErrorHistory {
		require.True(t, e.Recovered, "%s: %s", e.Context, e.Category)
		seen[string(e.Category)] = true
	}
	for _, category := range []string{"claude-p-exit-nonzero", "rate-limit", "claude-p-timeout", "output-truncated",
		"output-empty", "output-no-artifact", "validation-failed"} {
		require.True(t, seen[category], "no %s among %v", category, seen)
	}
}

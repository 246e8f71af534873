package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
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
func (h *house) variant(pairs ...string) string {
	h.t.Helper()
	folder := h.copyExample()
	for i := 0; i < len(pairs); i += 2 {
		replace(h.t, folder, "corpus-tiny.yaml", pairs[i], pairs[i+1])
	}
	return filepath.Join(folder, "corpus-tiny.yaml")
}

// TestEveryRecoverableFaultAtOnce ends with the page of a run that met none of them, and every fault stands in its books as recovered.
func TestEveryRecoverableFaultAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
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
		seen[e.Category] = true
	}
	for _, category := range []string{"claude-p-exit-nonzero", "rate-limit", "claude-p-timeout", "output-truncated", "output-empty", "output-no-artifact", "validation-failed"} {
		require.True(t, seen[category], "no %s among %v", category, seen)
	}
}

// TestEveryPauseHasAWayOn meets every cause of a pause that a definition, a fault or a person can give, types what status says, and ends well. (A full
// disk has a test of its own.)
func TestEveryPauseHasAWayOn(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name   string
		faults string
		change []string // of the definition
		before []string // verbs typed while the run is at its third pass
		reason string
		next   string   // what status says to type
		then   []string // the same, typed: the directory is put in for DIR
	}{
		{name: "an agent that keeps failing", faults: "- {at: 3, attempt: all, do: exit, stderr: no such model}\n", reason: run.PassFailed,
			next: "mend the cause, then STARTER resume DIR", then: []string{"resume DIR"}},
		{name: "an agent that is logged out", faults: "- {at: 3, do: is_error, text: 'Invalid API key · Please run /login'}\n", reason: run.PassFailed,
			next: "mend the cause, then STARTER resume DIR", then: []string{"resume DIR"}},
		{name: "a program that is not there", change: []string{"run: [scripted] ", "run: [no-such-agent] "}, reason: run.PassFailed,
			next: "mend the cause, then STARTER resume DIR"},
		{name: "a budget", change: []string{"budget: {usd: 2,", "budget: {usd: 0.3,"}, reason: run.BudgetThreshold,
			next: "STARTER budget DIR --usd N, then STARTER resume DIR", then: []string{"budget DIR --usd 5", "resume DIR"}},
		{name: "a quality gate", change: []string{"repeat: {max: 2, until: score >= 3}", "repeat: {max: 2, until: score >= 3}\n    quality_gate: score >= 3"},
			reason: run.QualityGate, next: "STARTER resume DIR", then: []string{"resume DIR"}},
		{name: "a review", change: []string{"checkpoint: cp-{set}", "checkpoint: cp-{set}\n    pause_after: true"}, reason: run.UserReview,
			next: "STARTER resume DIR", then: []string{"resume DIR", "resume DIR"}},
		{name: "a person", faults: slow("3", "1"), before: []string{"pause DIR"}, reason: run.UserRequested, next: "STARTER resume DIR", then: []string{"resume DIR"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.spoil(row.faults)
			dir := h.dir("run")
			h.starter("run", "--config", h.variant(row.change...), "--output-dir", dir, "--detach")
			typed := func(line string) { h.starter(strings.Fields(strings.ReplaceAll(line, "DIR", dir))...) }
			for _, line := range row.before {
				h.mid("003")
				typed(line)
			}
			rested := 0
			for _, line := range append(row.then, "") {
				until(t, "the run rests, or is through", func() bool { return statusIs(dir, run.Paused) || statusIs(dir, run.Done) })
				if line == "" || statusIs(dir, run.Done) {
					break
				}
				rested++
				require.Equal(t, row.reason, metaOf(t, dir).State.Reason)
				require.Contains(t, strings.ReplaceAll(h.starter("status", dir), filepath.Join(programs, "starter"), "STARTER"), "Next: "+strings.ReplaceAll(row.next, "DIR", dir))
				h.spoil("[]\n")
				typed(line)
			}
			require.GreaterOrEqual(t, rested, min(1, len(row.then)), "it never rested")
			if row.then == nil { // only another definition helps
				until(t, "the run rests", func() bool { return statusIs(dir, run.Paused) })
				require.Equal(t, row.reason, metaOf(t, dir).State.Reason)
				require.Equal(t, "claude-p-spawn-failed", categories(t, dir)[0])
				return
			}
			until(t, "the run is through", func() bool { return statusIs(dir, run.Done) })
			require.Equal(t, foretell(t, tiny()).artifact(), artifactOf(t, dir))
			h.sound(dir)
		})
	}
}

// categories are those of errors.jsonl, in order.
func categories(t *testing.T, dir string) []string {
	t.Helper()
	rows, _, err := rundir.Rows[rundir.ErrorRecord](rundir.At(dir), rundir.ErrorsLog)
	require.NoError(t, err)
	var all []string
	for _, r := range rows {
		all = append(all, r.Category)
	}
	return all
}

package conformance

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// moneyRun runs out of money twice, both times when three auditors have been paid at once. Each call costs a cent.
var moneyRun = &shared{make: makeMoney}

var money struct {
	first, second stopped
	refused       stopped // resume without a raise
	tooLow        stopped // a raise to less than is spent
}

var auditing = []part{
	{"first", "report", ""}, {"second", "report", ""}, {"third", "report", ""},
	{"auditor_A", "report", ""}, {"auditor_B", "report", ""}, {"auditor_C", "report", ""},
	{"weaver", "report",
		`score: {name: PA-05, find: 'PA-05(?:\s+(?:score|overall))?\W*([0-4](?:\.\d+)?)\s*/\s*4', ` +
			`take: last, range: [0, 4]}`},
}

func makeMoney(t *testing.T) result {
	spoil(t, "[]")
	config := writePlays(t, "money", auditing, `  - name: look
    repeat: {max: 4, until: score >= 3.5}
    checkpoint: cp-PA-{n}
    dir: screenshots/cycle-{n}
    steps:
      - together: [auditor-A, auditor-B, auditor-C]
      - role: weaver
budget: {usd: 0.05}
`)
	r := result{dir: filepath.Join(base, "money")}
	attach := func(code int) stopped {
		s := open(t, "run", "--config", config, "--output-dir", r.dir)
		if code == 3 { // it waits for a budget, which can be raised there
			s.shows(t, "Press b to raise it")
			s.press(t, "q")
		}
		require.Equal(t, code, s.ends(t), s.text())
		return stopped{output: s.text(), state: r.state(t), status: lookAt(t, r.dir), code: code}
	}
	tried := func(args ...string) stopped {
		output, code := try(t, args...)
		return stopped{output: output, code: code, state: r.state(t)}
	}
	money.first = attach(3)
	money.refused = tried("resume", r.dir)
	money.tooLow = tried("budget", r.dir, "--usd", "0.055")
	starter(t, "budget", r.dir, "--usd", "0.08")
	starter(t, "resume", r.dir)
	money.second = attach(3)
	starter(t, "budget", r.dir, "--usd", "1")
	starter(t, "resume", r.dir)
	attach(0)
	return r
}

// spent is what a run has cost, in cents.
func spent(t *testing.T, state object) float64 {
	t.Helper()
	return 100 * state.number(t, "cost.totalEstimatedCostUsd")
}

// moneyRows are budgets and scores.
func moneyRows() rows {
	return rows{
		"RX-21": func(t *testing.T) {
			moneyRun.get(t)
			at := money.first
			require.Equal(t, []any{"paused", "budget-threshold", "look"},
				[]any{at.state["currentPhase"], at.state["phaseReason"], at.state["pausedFrom"]})
			require.InDelta(t, 6, spent(t, at.state), 1e-6,
				"three were out at once: the cap of 5 is passed by what they cost, and by no more")
			require.Contains(t, at.output, "Paused: $0.06 of $0.05 are spent.")
			require.Contains(t, at.status, "$0.06 / $0.05 (120%)")
			require.Equal(t, true, at.state.at(t, "cost.hardCapHit"))
		},
		"RX-22": func(t *testing.T) {
			r := moneyRun.get(t)
			require.Equal(t, []int{5, 2}, []int{money.refused.code, money.tooLow.code}, "%s\n%s", money.refused.output,
				money.tooLow.output)
			for _, s := range []stopped{money.refused, money.tooLow} {
				require.InDelta(t, 6, spent(t, s.state), 1e-6, "it went on without money")
			}
			require.Equal(t, "budget-threshold", money.second.state.text(t, "phaseReason"))
			require.InDelta(t, 8, spent(t, money.second.state), 1e-6, "members begin only if the rest covers their means")
			require.InDelta(t, 0.08, money.second.state.number(t, "cost.budgetHardCapUsd"), 1e-9)
			require.InDelta(t, 15, spent(t, r.state(t)), 1e-6)
			require.Equal(t, "complete", r.state(t).text(t, "currentPhase"))
			require.Len(t, r.decisions(t, "pause-pipeline"), 2)
			require.Len(t, r.costs(t), 15, "nothing is asked twice")
		},
		"LC-11": func(t *testing.T) {
			moneyRun.get(t)
			warning := "! $0.06 of $0.05 are spent"
			require.Contains(t, money.first.output, warning)
			require.Less(t, strings.Index(money.first.output, warning), strings.Index(money.first.output, "Paused: "))
		},
	}
}

// TestScores: a score in bold counts, one that is quoted does not, and one out of range is none.
func TestScores(t *testing.T) {
	useRowsEnv(t)
	r := moneyRun.get(t)
	rows := where(r.log(t, "quality.jsonl"), "type", "pa-score")
	require.Len(t, rows, 3)
	require.Nil(t, rows[0].at(t, "score"), "4.3 of 4")
	require.Contains(t, rows[0].text(t, "why"), "4.3")
	require.Nil(t, rows[0]["metThreshold"])
	require.Equal(t, 1, count(r.text(t), `\[WARN\]    No PA-05 score: .*4\.3`))
	require.InDelta(t, 2.5, rows[1].number(t, "score"), 0, "the last one in the text, not last cycle's")
	require.InDelta(t, 3.5, rows[2].number(t, "score"), 0)
	require.Equal(t, true, rows[2]["metThreshold"])
	require.EqualValues(t, 3, r.state(t).number(t, "completedPACycles"), "the fourth is not needed")
	for n, want := range []any{nil, 2.5, 3.5} {
		require.Equal(t, want, r.cycle(t, n+1).at(t, "paScore"))
	}
}

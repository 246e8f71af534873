package conformance

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// moneyRun exceeds its budget twice, each time after three concurrent auditors. Each call costs a cent.
var moneyRun = &shared{make: makeMoney}

// money are its two pauses.
var money struct{ first, second stopped }

var auditing = []part{
	{"first", "report", ""}, {"second", "report", ""}, {"third", "report", ""},
	{"auditor_A", "report", ""}, {"auditor_B", "report", ""}, {"auditor_C", "report", ""},
	{"weaver", "report",
		`score: {name: PA-05, find: 'PA-05(?:\s+(?:score|overall))?\W*([0-4](?:\.\d+)?)\s*/\s*4', ` +
			`take: last, range: [0, 4]}`},
}

func makeMoney(t *testing.T) result {
	setRowsFaults(t, "[]")
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
		s := rowsEnv.open(t, "run", "--config", config, "--output-dir", r.dir)
		if code == 3 { // it waits for a budget, which can be raised there
			s.shows(t, "Press b to raise it")
			s.press(t, "q")
		}
		require.Equal(t, code, s.ends(t), s.text())
		status, _ := try(t, "status", r.dir)
		return stopped{output: s.text(), state: r.state(t), status: status, code: code}
	}
	money.first = attach(3)
	starter(t, "budget", r.dir, "--usd", "0.08")
	starter(t, "resume", r.dir)
	money.second = attach(3)
	starter(t, "budget", r.dir, "--usd", "1")
	starter(t, "resume", r.dir)
	attach(0)
	return r
}

// spent returns the costs of a run, in cents.
func spent(t *testing.T, state object) float64 {
	t.Helper()
	return 100 * state.number(t, "cost.totalEstimatedCostUsd")
}

// budgetRows are budgets and scores.
func budgetRows() rows {
	return rows{
		"RX-21": func(t *testing.T) {
			moneyRun.get(t)
			at := money.first
			requirePosition(t, at.state, "paused", "budget-threshold")
			require.Equal(t, "look", at.state.text(t, "pausedFrom"))
			require.InDelta(t, 6, spent(t, at.state), 1e-6,
				"three calls were in flight: their costs exceed the cap of 5, and nothing else")
			require.Contains(t, at.status, "$0.06 / $0.05 (120%)")
			require.Equal(t, true, at.state.at(t, "cost.hardCapHit"))
		},
		"RX-22": func(t *testing.T) {
			r := moneyRun.get(t)
			requirePosition(t, money.second.state, "paused", "budget-threshold")
			require.InDelta(t, 8, spent(t, money.second.state), 1e-6, "members begin only if the rest covers their means")
			require.InDelta(t, 15, spent(t, r.state(t)), 1e-6)
			require.Equal(t, "complete", r.state(t).text(t, "currentPhase"))
			require.Len(t, r.costs(t), 15, "no call is repeated")
		},
		"LC-11": func(t *testing.T) {
			moneyRun.get(t)
			warning := "! $0.06 of $0.05 are spent"
			require.Contains(t, money.first.output, warning)
			require.Less(t, strings.Index(money.first.output, warning), strings.Index(money.first.output, "Paused: "))
		},
	}
}

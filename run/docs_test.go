package run_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

var update = flag.Bool("update", false, "write the tables of docs/run-state.md again")

// TestDocs holds the tables of docs/run-state.md to the code.
func TestDocs(t *testing.T) {
	const page = "../docs/run-state.md"
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	text := string(raw)
	for name, table := range map[string]string{"statuses": statusTable(), "transitions": transitionTable(), "operations": operationTable()} {
		from, to := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
		before, rest, ok := strings.Cut(text, from)
		require.True(t, ok, from)
		_, after, ok := strings.Cut(rest, to)
		require.True(t, ok, to)
		text = before + from + table + to + after
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
		return
	}
	require.Equal(t, text, string(raw), "write the tables again with: go test ./run -run TestDocs -update")
}

// TestTheNightWatchKnowsEveryStatus holds docs/operating.md to it that whatever a run may come to has a row that says what to type.
func TestTheNightWatchKnowsEveryStatus(t *testing.T) {
	raw, err := os.ReadFile("../docs/operating.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(raw), "\n## The night watch\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, s := range statuses() {
		if s != run.Paused {
			require.Contains(t, section, "\n| `"+string(s)+"` | ")
			continue
		}
		for _, reason := range pauses() {
			require.Contains(t, section, "\n| `paused` (`"+reason+"`) | ")
		}
	}
}

// pauses are the reasons for which a run rests.
func pauses() []string {
	return []string{run.UserRequested, run.UserReview, run.BudgetThreshold, run.QualityGate, run.PassFailed, run.ConsecutiveFailures, run.DiskFull}
}

func tableRow(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

func statusTable() string {
	out := tableRow("status", "class", "`rfc_status`", "what it means", "what to do") + "|---|---|---|---|---|\n"
	for _, s := range statuses() {
		if s != run.Paused {
			out += tableRow("`"+string(s)+"`", string(s.Class()), s.RFC(), run.Means(s, ""), run.Next(s, ""))
			continue
		}
		for _, reason := range pauses() {
			out += tableRow("`"+string(s)+"`, "+reason, string(s.Class()), s.RFC(), run.Means(s, reason), run.Next(s, reason))
		}
	}
	return out
}

func transitionTable() string {
	heads := []string{"from \\ to"}
	for _, to := range statuses() {
		heads = append(heads, string(to))
	}
	out := tableRow(heads...) + "|---" + strings.Repeat("|:-:", len(statuses())) + "|\n"
	for _, from := range statuses() {
		cells := []string{"`" + string(from) + "`"}
		for _, to := range statuses() {
			cell := "·"
			if run.Transition(from, to) == nil {
				cell = "yes"
			}
			cells = append(cells, cell)
		}
		out += tableRow(cells...)
	}
	return out
}

func operationTable() string {
	heads := []string{"status"}
	for _, op := range run.AllOperations() {
		heads = append(heads, string(op))
	}
	out := tableRow(heads...) + "|---" + strings.Repeat("|:-:", len(heads)-1) + "|\n"
	for _, s := range statuses() {
		cells := []string{"`" + string(s) + "`"}
		for _, op := range run.AllOperations() {
			cells = append(cells, operationCell(s, op))
		}
		out += tableRow(cells...)
	}
	return out
}

func operationCell(s run.Status, op run.Operation) string {
	plain, undecided := run.May(s, op, run.Terms{}) == nil, run.May(s, op, run.Terms{Undecided: true}) == nil
	switch {
	case plain && undecided:
		return "yes"
	case undecided:
		return "undecided"
	case plain:
		return "none undecided"
	case run.May(s, op, run.Terms{Forced: true}) == nil:
		return "force"
	}
	return "·"
}

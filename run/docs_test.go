package run_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

var update = flag.Bool("update", false, "update the generated tables of the docs")

// TestDocs compares the tables of the docs with the code.
func TestDocs(t *testing.T) {
	compareTables(t, "../docs/run-state.md", map[string]string{
		"statuses": statusTable(), "transitions": transitionTable(), "operations": operationTable(),
		"kinds": kindTable(), "projects": projectTable(),
	})
	compareTables(t, "../docs/run-directory.md", map[string]string{"categories": categoryTable()})
}

func projectTable() string {
	var out strings.Builder
	out.WriteString("| outcome | the project | status of the parent | delivery | what happens next |\n" +
		"|---|---|---|---|---|\n")
	for _, r := range run.ProjectRules() {
		delivery := "waits"
		switch {
		case r.Blocks:
			delivery = "blocked"
		case r.Ends:
			delivery = "possible"
		}
		fmt.Fprintf(&out, "| `%s` | %s | `%s` | %s | %s |\n", r.Outcome, r.Meaning, r.Parent, delivery, r.Then)
	}
	return out.String()
}

func compareTables(t *testing.T, page string, tables map[string]string) {
	t.Helper()
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	text := string(raw)
	for name, table := range tables {
		from, to := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
		before, rest, ok := strings.Cut(text, from)
		require.True(t, ok, from)
		written, after, ok := strings.Cut(rest, to)
		require.True(t, ok, to)
		text = before + from + table + to + after
		if !*update {
			require.Equal(t, table, written, "update the tables of %s with: go test ./run -run TestDocs -update", page)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
	}
}

// TestOperatingListsEveryStatus checks that docs/operating.md has a row for every status and pause reason.
func TestOperatingListsEveryStatus(t *testing.T) {
	raw, err := os.ReadFile("../docs/operating.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(raw), "\n## Statuses\n")
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

// pauses are the reasons for which a run pauses.
func pauses() []string {
	return []string{run.UserRequested, run.UserReview, run.BudgetThreshold, run.QualityGate, run.PassFailed,
		run.ConsecutiveFailures, run.DiskFull}
}

func tableRow(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

func statusTable() string {
	out := tableRow("status", "class", "`rfc_status`") + "|---|---|---|\n"
	for _, s := range statuses() {
		out += tableRow("`"+string(s)+"`", string(s.Class()), s.RFC())
	}
	return out
}

func categoryTable() string {
	out := tableRow("category", "meaning", "kind", "no answer", "unusable answer", "exit code", "what to do") +
		"|---|---|---|---|---|---|---|\n"
	for _, c := range run.Categories() {
		exit := ""
		if c.Exit != 0 {
			exit = strconv.Itoa(c.Exit)
		}
		out += tableRow("`"+string(c.Name)+"`", c.Meaning, string(c.Nature), string(c.Retry), string(c.Unusable), exit,
			c.Advice+".")
	}
	return out
}

func transitionTable() string {
	out := tableRow("from", "to") + "|---|---|\n"
	for _, from := range statuses() {
		var to []string
		for _, s := range statuses() {
			if run.Transition(from, s) == nil {
				to = append(to, string(s))
			}
		}
		out += tableRow("`"+string(from)+"`", cmp.Or(strings.Join(to, ", "), "none"))
	}
	return out
}

func kindTable() string {
	out := tableRow("kind", "payload", "what it does to the status") + "|---|---|---|\n"
	var names, others []string // of consecutive kinds with the same row, and of those that do not change the status
	kinds := run.Kinds()
	for i, k := range kinds {
		payload, effect := run.KindRow(k)
		if effect == "" {
			others = append(others, "`"+string(k)+"` (`"+payload+"`)")
			continue
		}
		names = append(names, "`"+string(k)+"`")
		if i+1 < len(kinds) {
			if p, e := run.KindRow(kinds[i+1]); p == payload && e == effect {
				continue
			}
		}
		out += tableRow(strings.Join(names, ", "), "`"+payload+"`", effect)
		names = nil
	}
	return out + "\n" + wrapped("These do not change it: "+strings.Join(others, ", ")+".")
}

// wrapped breaks a paragraph into lines of at most 120 columns.
func wrapped(text string) string {
	out, line := "", ""
	for _, word := range strings.Fields(text) {
		if len(line)+len(word) >= 120 {
			out, line = out+line+"\n", ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return out + line + "\n"
}

func operationTable() string {
	out := tableRow("status", "allowed operations") + "|---|---|\n"
	for _, s := range statuses() {
		var allowed []string
		for _, op := range run.AllOperations() {
			if cell := operationCell(s, op); cell != "" {
				allowed = append(allowed, strings.TrimSpace(string(op)+cell))
			}
		}
		out += tableRow("`"+string(s)+"`", strings.Join(allowed, ", "))
	}
	return out
}

// operationCell is how an operation is allowed; empty: not at all.
func operationCell(s run.Status, op run.Operation) string {
	if op == run.Observe || op == run.Diagnose {
		return ""
	}
	plain, undecided := run.May(s, op, run.Terms{}) == nil, run.May(s, op, run.Terms{Undecided: true}) == nil
	switch {
	case plain && undecided:
		return " "
	case undecided:
		return " (undecided)"
	case plain:
		return " (none undecided)"
	case run.May(s, op, run.Terms{Forced: true}) == nil:
		return " (force)"
	}
	return ""
}

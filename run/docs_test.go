package run_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

var update = flag.Bool("update", false, "update the generated parts of the docs")

// TestDocs compares the generated parts of the docs with the code.
func TestDocs(t *testing.T) {
	compareTables(t, "../docs/run-state.md", map[string]string{
		"statuses": statusTable(), "transitions": transitionTable(), "operations": operationTable(),
		"kinds": kindTable(), "projects": projectTable(),
	})
	compareTables(t, "../docs/run-directory.md", map[string]string{"categories": categoryTable()})
}

func projectTable() string {
	out := ""
	for _, r := range run.ProjectRules() {
		out += item(fmt.Sprintf("`%s` (`%s`): %s; %s", r.Outcome, r.Parent, r.Meaning, r.Then))
	}
	return out
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
		run.GateFailed, run.ConsecutiveFailures, run.DiskFull, run.SetupFailed}
}

func statusTable() string {
	out := ""
	for _, s := range statuses() {
		out += item(fmt.Sprintf("`%s`: %s; %s", s, s.Class(), s.RFC()))
	}
	return out
}

func categoryTable() string {
	out := ""
	for _, c := range run.Categories() {
		how := string(c.Nature) + "; " + string(c.Retry)
		if c.Unusable != "" {
			how += "; " + string(c.Unusable)
		}
		out += item(fmt.Sprintf("`%s` (%s): %s %s.", c.Name, how, c.Meaning, c.Advice))
	}
	return out
}

func transitionTable() string {
	out := ""
	for _, from := range statuses() {
		var to []string
		for _, s := range statuses() {
			if run.Transition(from, s) == nil {
				to = append(to, string(s))
			}
		}
		out += item("`" + string(from) + "`: " + cmp.Or(strings.Join(to, ", "), "none"))
	}
	return out
}

func kindTable() string {
	out := ""
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
		out += item(fmt.Sprintf("%s (`%s`): %s", strings.Join(names, ", "), payload, effect))
		names = nil
	}
	return out + "\n" + wrapped("", "These do not change it: "+strings.Join(others, ", ")+".")
}

// item is an item of a list.
func item(text string) string { return "- " + strings.TrimPrefix(wrapped("  ", text), "  ") }

// wrapped breaks a paragraph into lines of at most 120 columns.
func wrapped(indent, text string) string {
	out, line := "", indent
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) >= 120 {
			out, line = out+line+"\n", indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	return out + line + "\n"
}

func operationTable() string {
	out := ""
	for _, s := range statuses() {
		var allowed []string
		for _, op := range run.AllOperations() {
			if cell := operationCell(s, op); cell != "" {
				allowed = append(allowed, strings.TrimSpace(string(op)+cell))
			}
		}
		out += item("`" + string(s) + "`: " + strings.Join(allowed, ", "))
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

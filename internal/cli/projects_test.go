package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestStatusOfRunAcrossProjects shows, for each outcome of a project, what status prints about the projects and the
// question, what it advises, and how watch ends.
func TestStatusOfRunAcrossProjects(t *testing.T) {
	golden, err := filepath.Abs(filepath.Join("testdata", "status-across-projects.txt"))
	require.NoError(t, err)
	w := newHost(t)
	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	var table strings.Builder
	for _, rule := range run.ProjectRules() {
		if rule.Outcome == run.ProjectSkipped {
			continue // of the service, in the rows of the library
		}
		dir := filepath.Join(w.root, string(rule.Outcome))
		w.acrossProjects(t, dir, rule)
		output, code := w.here("status", dir)
		require.Zero(t, code, output)
		fmt.Fprintf(&table, "## %s\n%s", rule.Outcome, aboutProjects(output, w.root))
		if rule.Parent.Class() != run.Live { // else watch waits
			output, code = w.here("watch", dir)
			require.Equal(t, exitOperator, code, output)
			fmt.Fprintf(&table, "watch, exit code %d: %s", code, aboutProjects(output, w.root))
		}
		table.WriteString("\n")
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(table.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), table.String())
}

// aboutProjects are the lines about the status, the question, the projects and the next commands.
func aboutProjects(output, root string) string {
	var kept strings.Builder
	for l := range strings.Lines(output) {
		about := func(start string) bool { return strings.HasPrefix(l, start) }
		if slices.ContainsFunc([]string{"Status:", "Waits for:", "Cost:", "Projects:", "  library:", "  service:", "Next:"},
			about) && !strings.Contains(l, "temporal workflow") {
			kept.WriteString(l)
		}
	}
	return strings.NewReplacer(root, "", program(), "starter").Replace(kept.String())
}

// acrossProjects creates a run with a library of that outcome and a service that needs it.
func (w *machine) acrossProjects(t *testing.T, dir string, rule run.ProjectRule) {
	t.Helper()
	id := "across-" + string(rule.Outcome)
	start := run.RunStart{
		Pipeline: "shop", RunID: id, ThreadID: id, Epoch: 1, RunKind: run.RunKindCross, Stages: []run.StageRef{},
		Projects: []run.ProjectRef{{Alias: "library", RunID: id + "-library", Source: "/library"},
			{Alias: "service", RunID: id + "-service", Source: "/service", Needs: []string{"library"}}},
	}
	events := []event{{run.KindRunStart, start}}
	add := func(kind run.Kind, payload any) { events = append(events, event{kind, payload}) }
	if rule.Outcome != run.ProjectPending {
		add(run.KindProjectStarted, run.ProjectStart{Alias: "library", RunID: id + "-library"})
	}
	if rule.Ends {
		add(run.KindProjectEnded, run.ProjectEnd{Alias: "library", RunID: id + "-library", Outcome: rule.Outcome, USD: 1})
	}
	switch {
	case rule.Blocks:
		add(run.KindProjectSkipped, run.ProjectSkip{Alias: "service", Needs: []string{"library"}})
		add(run.KindGateRequested, run.QuestionRequested{Kind: run.QuestionGate, ID: "gate:1:5:", Trigger: run.TriggerBlocked,
			Question: "These projects are not done:\n- library " + string(rule.Outcome) + "\n- service skipped (needs library)",
			Phase:    "projects", Actions: []string{run.ActionRetry, run.ActionHalt}})
	case rule.Outcome == run.ProjectAsks:
		add(run.KindHandoffRequested, run.QuestionRequested{Kind: run.QuestionHandoff, ID: "project:library:1:3:",
			Trigger: run.TriggerProject, Question: "Project library: make test failed. Continue?",
			Phase: run.PhaseOfProject("library"), Actions: []string{run.ActionRetry, run.ActionHalt},
			Project: &run.AskedBy{Alias: "library", ID: "gate:1:9:", Kind: run.QuestionGate}})
	}
	w.record(t, dir, run.Claim{RunID: id, Pipeline: "shop", Projects: []string{"library", "service"}}, events...)
	if rule.Outcome == run.ProjectPaused {
		w.run(t, "small.yaml", filepath.Join(dir, "library"), id+"-library", run.UserRequested)
	}
}

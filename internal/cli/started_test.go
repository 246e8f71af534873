package cli

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

// TestMetaHasProjectAndProfile starts runs and reads from meta.json what they work on and what kind they are.
func TestMetaHasProjectAndProfile(t *testing.T) {
	w := newTargetWorld(t)
	source := w.workspaces(t)
	for name, row := range map[string]struct {
		args    []string
		project string
	}{
		"the folder of the definition": {[]string{"run", "small.yaml"}, w.root},
		"the folder that it works on":  {[]string{"run", "folder.yaml"}, filepath.Join(w.root, "files")},
		"the repository":               {[]string{"run", "git.yaml", "--source", "source"}, source},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			said, code := w.here(append(row.args, "--output-dir", dir, "--detach")...)
			require.Equal(t, 0, code, said)
			w.begin(t, dir)
			meta, err := projector.At(dir).Meta()
			require.NoError(t, err)
			require.Equal(t, row.project, meta.Project)
			require.Equal(t, "work", meta.Profile)
		})
	}
}

// TestRaisedBudgetIsNotAdvisedAgain pauses for the budget, raises it, and looks for advice to raise it.
func TestRaisedBudgetIsNotAdvisedAgain(t *testing.T) {
	w := newTargetWorld(t)
	w.temporal.open = []string{"aaaa-paused", "bbbb-raised"}
	spent := run.PassEnd{Pass: writing, Outcome: run.CategoryOK, Attempts: 1, Spend: run.Spend{USD: 5.5}}
	paused := []told{{run.KindPassStart, run.PassStart{Pass: writing, Attempt: 1}}, {run.KindPassEnd, spent},
		{run.KindBudgetExceeded, run.BudgetEvent{TotalUSD: 5.5, Budget: run.Budget{CapUSD: 5}}},
		{run.KindRunPaused, run.RunPaused{Reason: run.BudgetThreshold}}}
	raised := append(paused[:len(paused):len(paused)],
		told{run.KindBudgetRaised, run.BudgetEvent{TotalUSD: 5.5, Budget: run.Budget{CapUSD: 20}}})
	before := w.journaledRun(t, "aaaa-paused", run.WordingStages, paused...)
	after := w.journaledRun(t, "bbbb-raised", run.WordingStages, raised...)
	advice := regexp.MustCompile(`(?i)raise (it|the)|\bbudget \S+ --usd|press b\b|cannot continue`)
	texts := func(id string, d projector.Dir) map[string]string {
		all := map[string]string{}
		for name, args := range map[string][]string{"status": {"status", id}, "status --json": {"status", id, "--json"},
			"diagnose": {"diagnose", id}, "diagnose --json": {"diagnose", id, "--json"},
			"report": {"report", id, "--out", "-"}} {
			all[name], _ = w.here(args...)
		}
		now, err := d.Now()
		require.NoError(t, err)
		all["screen"] = pausedFor(now.State)
		return all
	}
	for name, text := range texts("aaaa-paused", before) {
		require.Regexp(t, advice, text, name)
	}
	for name, text := range texts("bbbb-raised", after) {
		require.NotRegexp(t, advice, text, name)
	}
}

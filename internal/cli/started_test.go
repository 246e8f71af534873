package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
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
			output, code := w.here(append(row.args, "--output-dir", dir, "--detach")...)
			require.Equal(t, 0, code, output)
			w.begin(t, dir)
			meta, err := projector.At(dir).Meta()
			require.NoError(t, err)
			require.Equal(t, row.project, meta.Project)
			require.Equal(t, "work", meta.Profile)
		})
	}
}

// TestRunPrintsAmendment amends a run that waits for a usage limit.
func TestRunPrintsAmendment(t *testing.T) {
	w := newTargetWorld(t)
	dir := filepath.Join(w.root, "waits")
	w.run(t, "small.yaml", dir, "waits-1", run.WaitingLimit)
	w.temporal.open = []string{"waits-1"}
	w.temporal.answer = &workflows.Ack{Status: run.WaitingLimit, Message: "amended; in force for the next call"}
	file := filepath.Join(w.root, "small.yaml")
	require.NoError(t, os.WriteFile(file, []byte(smallPipeline+"budget: {usd: 7}\n"), 0o644))
	output, code := w.here("run", "small.yaml", "--output-dir", dir, "--amend", "--detach")
	require.Equal(t, 0, code, output)
	require.Contains(t, output, "Run waits-1: amended; in force for the next call.\n  small.yaml:")
	require.Contains(t, output, "budget.usd is \"7\"")

	var out bytes.Buffer
	Main([]string{"run", "small.yaml", "--output-dir", dir, "--amend", "--detach", "--json"}, strings.NewReader(""), &out,
		io.Discard)
	var printed Started
	require.NoError(t, json.Unmarshal(out.Bytes(), &printed), out.String())
	require.Equal(t, "waits-1", printed.RunID)
	require.NotNil(t, printed.Amended)
	require.Equal(t, "amended; in force for the next call", printed.Amended.Message)
	require.Equal(t, "budget.usd", printed.Amended.Differences[0].Name)
}

// TestRaisedBudgetIsNotAdvisedAgain pauses for the budget, raises it, and looks for advice to raise it.
func TestRaisedBudgetIsNotAdvisedAgain(t *testing.T) {
	w := newTargetWorld(t)
	w.temporal.open = []string{"aaaa-paused", "bbbb-raised"}
	spent := run.PassEnd{Pass: writing, Outcome: run.CategoryOK, Attempts: 1, Spend: run.Spend{USD: 5.5}}
	paused := []step{{run.KindPassStart, run.PassStart{Pass: writing, Attempt: 1}}, {run.KindPassEnd, spent},
		{run.KindBudgetExceeded, run.BudgetEvent{TotalUSD: 5.5, Budget: run.Budget{CapUSD: 5}}},
		{run.KindRunPaused, run.RunPaused{Reason: run.BudgetThreshold}}}
	raised := append(paused[:len(paused):len(paused)],
		step{run.KindBudgetRaised, run.BudgetEvent{TotalUSD: 5.5, Budget: run.Budget{CapUSD: 20}}})
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
		all["screen"] = view.WhyPaused(now.State, now.State.Status)
		return all
	}
	for name, text := range texts("aaaa-paused", before) {
		require.Regexp(t, advice, text, name)
	}
	for name, text := range texts("bbbb-raised", after) {
		require.NotRegexp(t, advice, text, name)
	}
}

// TestSourceOfFollowUpIsCompared refuses another source, which a follow-up could only ignore.
func TestSourceOfFollowUpIsCompared(t *testing.T) {
	w := newTargetWorld(t)
	w.workspaces(t)
	next := []string{"run", "--follow-up", "5678-tree", "--config", "folder.yaml", "--task", "More", "--detach",
		"--output-dir", "next"}
	before := w.digests(t)
	for name, row := range map[string]struct {
		args    []string
		message string
	}{
		"another source": {[]string{"--source", "source"}, "which worked on " + filepath.Join(w.root, "files")},
		"dirty":          {[]string{"--dirty", "include"}, "--dirty include: a follow-up begins with the result of run"},
	} {
		output, code := w.here(append(next[:len(next):len(next)], row.args...)...)
		require.Equal(t, 2, code, output)
		require.Contains(t, output, row.message, name)
		require.Equal(t, before, w.digests(t), name)
	}
	output, code := w.here(append(next, "--source", "files")...)
	require.Equal(t, 0, code, output)
}

// TestDirtyIsComparedWithRun refuses a start that takes the source over differently from the run in the directory.
func TestDirtyIsComparedWithRun(t *testing.T) {
	w := newTargetWorld(t)
	w.workspaces(t)
	dir := filepath.Join(w.root, "new run")
	call := func(more ...string) (string, int) {
		return w.here(append([]string{"run", "git.yaml", "--source", "source", "--output-dir", dir, "--detach"}, more...)...)
	}
	output, code := call("--dirty", "include")
	require.Equal(t, 0, code, output)
	w.begin(t, dir)
	w.temporal.open = []string{w.temporal.input().Claim.RunID}
	output, code = call("--dirty", "exclude")
	require.Equal(t, 2, code, output)
	require.Contains(t, output, `dirty is "exclude", the run has "include" (a run takes its source over when it starts)`)
	require.Contains(t, output, "starter run --config git.yaml --source source --dirty exclude --output-dir OTHER")
	for _, same := range [][]string{{"--dirty", "include"}, {}} {
		output, code = call(same...)
		require.Equal(t, 0, code, output)
		require.Contains(t, output, "Attached to run")
	}
}

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/figures"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

// step is an event of a run that a test creates.
type step struct {
	kind    run.Kind
	payload any
}

// journaledRun creates a run with one stage of one pass, which has these events after its start.
func (w *targetWorld) journaledRun(t *testing.T, id string, wording run.Wording, events ...step) projector.Dir {
	t.Helper()
	s, err := store.Open(t.Context(), "file://"+filepath.Join(w.state, "store"))
	require.NoError(t, err)
	defer s.Close()
	d := projector.At(filepath.Join(w.root, "runs", id))
	require.NoError(t, d.Take(run.Claim{Version: 1, RunID: id, ThreadID: id, CreatedAt: "2026-01-02T03:04:05.000Z",
		Pipeline: "silent", Store: s.URL()}))
	require.NoError(t, operations.Index(w.state, id, d.Root))
	start := step{run.KindRunStart, run.RunStart{Pipeline: "silent", RunID: id, ThreadID: id, Epoch: 1, TotalPasses: 1,
		Wording: wording, Budget: run.Budget{CapUSD: 5}, Stages: []run.StageRef{{Name: "write", Kind: "once"}}}}
	var lines []string
	for i, e := range append([]step{start}, events...) {
		text, err := line(int64(i+1), e.kind, e.payload)
		require.NoError(t, err)
		lines = append(lines, text)
	}
	p, err := d.Project(t.Context(), blobs.Of(s), projector.Batch{Epoch: 1, First: 1, Lines: lines})
	require.NoError(t, err)
	require.Equal(t, run.ProjectionWritten, p.Outcome)
	return d
}

// writing is the pass of such a run.
var writing = run.Pass{Step: "001", Number: 1, InRound: 1, OfRound: 1, Round: 1, Role: "writer", Gives: "report",
	Title: "Writer", Description: "Writer"}

// failing are attempts at that pass which fail without a report, one per category.
func failing(categories ...run.Category) (all []step) {
	for i, c := range categories {
		n := i + 1
		all = append(all, step{run.KindPassStart, run.PassStart{Pass: writing, Attempt: n, Attempts: 3}},
			step{run.KindPassAttempt, run.PassAttempt{Pass: writing, Category: c, Message: "agent exited with code 1",
				Attempt: n, Attempts: 3, ExitCode: 1, Judged: true, Spend: &run.Spend{Known: run.CostUnknown}}})
	}
	return all
}

// TestUnreportedAttemptsCountInTotals shows the cost of failed attempts without a report as unknown in every total.
func TestUnreportedAttemptsCountInTotals(t *testing.T) {
	const short, long = "≥ $0.50", "≥ $0.50 (2 calls not fully known)"
	w := newTargetWorld(t)
	answer := run.PassEnd{Pass: writing, Outcome: run.CategoryOK, Attempts: 3, LastInRound: true,
		Validation: run.Validation{Passed: true}, Spend: run.Spend{USD: 0.5, Known: run.CostExact},
		Next: &run.Place{Stage: 1, Round: 1}}
	d := w.journaledRun(t, "aaaa-silent", run.WordingStages, append(failing(run.CategoryAgentExit, run.CategoryAgentExit),
		step{run.KindPassStart, run.PassStart{Pass: writing, Attempt: 3, Attempts: 3}}, step{run.KindPassEnd, answer},
		step{run.KindRunPaused, run.RunPaused{Reason: run.UserRequested}})...)
	page := filepath.Join(w.root, "page.html")
	for name, row := range map[string]struct {
		args  []string
		shows string
	}{
		"status":        {[]string{"status", "aaaa-silent"}, long},
		"list":          {[]string{"list", "--offline"}, short},
		"cost-report":   {[]string{"cost-report", "aaaa-silent"}, long},
		"evidence":      {[]string{"evidence", "aaaa-silent"}, short},
		"status --json": {[]string{"status", "--json", "aaaa-silent"}, `"unknown_calls": 2`},
		"list --json":   {[]string{"list", "--offline", "--json"}, `"unknown_calls": 2`},
		"cost --json":   {[]string{"cost-report", "--json", "aaaa-silent"}, `"unknown_calls": 2`},
		"compare":       {[]string{"compare", "aaaa-silent", "1234-page"}, short},
		"lineage":       {[]string{"lineage", "--offline", "aaaa-silent"}, short},
		"checkpoints":   {[]string{"checkpoints", "--all", "aaaa-silent"}, short},
		"report":        {[]string{"report", "aaaa-silent", "--out", page}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			output, _ := w.here(row.args...)
			require.Contains(t, output, row.shows)
		})
	}
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(raw), short)
	require.Contains(t, string(raw), "2 calls not fully known")

	var meta struct {
		State struct {
			Spent struct {
				Known   string `json:"cost_known"`
				Unknown int    `json:"unknown_calls"`
			} `json:"spent"`
		} `json:"state"`
	}
	raw, err = os.ReadFile(d.Path("meta.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &meta), string(raw))
	require.Equal(t, "at_least", meta.State.Spent.Known)
	require.Equal(t, 2, meta.State.Spent.Unknown)

	src, err := figures.Read(d.Dir)
	require.NoError(t, err)
	require.Equal(t, 2, figures.Of(src, time.Now()).Cost.Unknown, "the live screen")
}

// TestCategoriesHaveNamesOfWording prints the names of requirement 002 for corpus pipelines only. Events have them on
// disk.
func TestCategoriesHaveNamesOfWording(t *testing.T) {
	w := newTargetWorld(t)
	events := append(failing(run.CategoryAgentExit, run.CategoryAgentTimeout, run.CategorySpawnFailed),
		step{run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryAgentTimeout, Message: "too late"}},
		step{run.KindPassEnd, run.PassEnd{Pass: writing, Outcome: run.CategoryAgentExit, Attempts: 3}},
		step{run.KindRunPaused, run.RunPaused{Reason: run.PassFailed, Detail: "Writer failed 3 times",
			Failed: &run.FailedPass{Step: "001", Category: run.CategorySpawnFailed}}})
	plain := w.journaledRun(t, "aaaa-plain", run.WordingStages, events...)
	w.journaledRun(t, "bbbb-corpus", run.WordingCorpus, events...)
	verbs := [][]string{{"status"}, {"status", "--json"}, {"logs"}, {"logs", "--json"}, {"cost-report", "--json"},
		{"quality-report", "--json"}, {"evidence"}, {"evidence", "--json"}, {"report", "--out", "-"}, {"diagnose"},
		{"diagnose", "--json"}, {"check"}, {"lineage", "--json", "--offline"}}
	for _, args := range verbs {
		output, _ := w.here(append(args, "aaaa-plain")...)
		require.NotContains(t, output, "claude-p", args)
	}
	output, _ := w.here("logs", "--json", "aaaa-plain")
	for _, name := range []string{"agent-exit-nonzero", "agent-timeout", "agent-spawn-failed"} {
		require.Contains(t, output, `"category":"`+name+`"`)
	}
	output, _ = w.here("logs", "--json", "bbbb-corpus")
	require.Contains(t, output, `"category":"claude-p-spawn-failed"`)
	for name, text := range everything(t, plain.Root) {
		require.Equal(t, name == "events.jsonl", strings.Contains(text, "claude-p"), name)
	}
}

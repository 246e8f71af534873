package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
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

// silentRun creates a paused run whose first pass had two attempts without a report, then an answer for 0.50 USD.
func silentRun(t *testing.T, dir, state, id string) projector.Dir {
	t.Helper()
	s, err := store.Open(t.Context(), "file://"+filepath.Join(state, "store"))
	require.NoError(t, err)
	defer s.Close()
	d := projector.At(dir)
	require.NoError(t, d.Take(run.Claim{Version: 1, RunID: id, ThreadID: id, CreatedAt: "2026-01-02T03:04:05.000Z",
		Pipeline: "silent", Store: s.URL()}))
	require.NoError(t, operations.Index(state, id, dir))
	pass := run.Pass{Step: "001", Number: 1, InRound: 1, OfRound: 1, Round: 1, Role: "writer", Gives: "report",
		Title: "Writer", Description: "Writer"}
	failed := run.PassAttempt{Pass: pass, Category: run.CategoryAgentExit, Message: "agent exited with code 1",
		Judged: true, Spend: &run.Spend{Known: run.CostUnknown}}
	var lines []string
	add := func(kind run.Kind, payload any) {
		text, err := line(int64(len(lines)+1), kind, payload)
		require.NoError(t, err)
		lines = append(lines, text)
	}
	add(run.KindRunStart, run.RunStart{Pipeline: "silent", RunID: id, ThreadID: id, Epoch: 1, TotalPasses: 1,
		Wording: run.WordingStages, Budget: run.Budget{CapUSD: 5}, Stages: []run.StageRef{{Name: "write", Kind: "once"}}})
	for n := range 3 {
		add(run.KindPassStart, run.PassStart{Pass: pass, Attempt: n + 1, Attempts: 3})
		if failed.Attempt = n + 1; n < 2 {
			add(run.KindPassAttempt, failed)
		}
	}
	add(run.KindPassEnd, run.PassEnd{Pass: pass, Outcome: run.CategoryOK, Attempts: 3, LastInRound: true,
		Validation: run.Validation{Passed: true}, Spend: run.Spend{USD: 0.5, Known: run.CostExact},
		Next: &run.Place{Stage: 1, Round: 1}})
	add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	p, err := d.Project(t.Context(), blobs.Of(s), projector.Batch{Epoch: 1, First: 1, Lines: lines})
	require.NoError(t, err)
	require.Equal(t, run.ProjectionWritten, p.Outcome)
	return d
}

// TestUnreportedAttemptsCountInTotals shows the cost of failed attempts without a report as unknown in every total.
func TestUnreportedAttemptsCountInTotals(t *testing.T) {
	const short, long = "≥ $0.50", "≥ $0.50 (2 calls unknown)"
	w := newTargetWorld(t)
	d := silentRun(t, filepath.Join(w.root, "runs", "silent"), w.state, "aaaa-silent")
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
		"report":        {[]string{"report", "aaaa-silent", "--out", page}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			said, _ := w.here(row.args...)
			require.Contains(t, said, row.shows)
		})
	}
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(raw), short)
	require.Contains(t, string(raw), "2 calls unknown")

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

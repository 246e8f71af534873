package e2e_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/figures"
	screen "github.com/passbook-run/passbook/internal/watch"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// testDemoFigures holds what is shown of the demo to what is known of it, and to state.json, read here without the
// types that wrote it.
func testDemoFigures(t *testing.T, h *environment, dir string) {
	src, err := figures.Read(projector.At(dir).Dir)
	require.NoError(t, err)
	f := figures.Of(src, time.Now())
	require.Equal(t, []int{56, 56, 100}, []int{f.Progress.Done, f.Progress.Total, f.Progress.Percent})
	require.Equal(t, figures.Quality{
		Passed: 56, Judged: 56, Warnings: 1, Notes: []figures.Note{{Name: "conviction", Entries: 56},
			{Name: "discovery", Entries: 55}}, Unmodified: 2,
	}, f.Quality)
	require.Equal(t, []figures.Point{{Cycle: 1, Score: 2.5}, {Cycle: 2, Score: 3}, {Cycle: 3, Score: 3.5, Met: true}},
		f.Trend)
	require.Equal(t, 70, f.Cost.Calls)
	require.Nil(t, f.Timing.Remaining)

	var state struct {
		StartedAt   time.Time
		CompletedAt time.Time
		Cost        struct {
			TotalEstimatedCostUsd float64
			BudgetHardCapUsd      float64
			ByRole                map[string]struct{ CostUsd float64 }
		}
		PassRecords map[string]struct{ DurationMs int64 }
	}
	require.NoError(t, json.Unmarshal(read(t, filepath.Join(dir, "_orchestrator", "state.json")), &state))
	var sum int64
	for _, r := range state.PassRecords {
		sum += r.DurationMs
	}
	require.InDelta(t, float64(sum)/56, float64(f.Timing.Mean.Nanoseconds())/1e6, 0.001)
	require.Equal(t, state.CompletedAt.Sub(state.StartedAt), f.Timing.Elapsed, "nothing was waited for")
	require.Equal(t, state.Cost.TotalEstimatedCostUsd, *f.Cost.Projected)

	testEstimates(t, dir, src)

	lines, code := h.try("watch", dir)
	require.Zero(t, code)
	require.Contains(t, lines, "Done: 56 of 56 passes")
	require.NotContains(t, lines, "\x1b", "a pipe is not a terminal")

	var drawn strings.Builder
	require.NoError(t, screen.Print(&drawn, screen.Options{Dir: rundir.At(dir)}, time.Now(), 100))
	text := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(drawn.String(), "")
	require.NotContains(t, text, "Remaining  ~")
	for _, want := range []string{
		"CORPUS INTEGRATION", "Run " + src.Records.RunID[:8] + " │ Started " +
			state.StartedAt.UTC().Format("2006-01-02 15:04 UTC"), "Phase      COMPLETE", "✓ done", "56/56 (100%)",
		"56/56 passed", "56 entries", "55 entries", "2 passes", "Retries     0", "S7 ████████ done",
		"A: 3.0  B: 3.5  C: 4.0", "PA-05: 3.5/4", "3.0 → 3.5",
		fmt.Sprintf("$%.2f", state.Cost.TotalEstimatedCostUsd),
		fmt.Sprintf("$%.2f (%.0f%% used)", state.Cost.BudgetHardCapUsd,
			100*state.Cost.TotalEstimatedCostUsd/state.Cost.BudgetHardCapUsd),
		fmt.Sprintf("Builder: $%.2f  Verifier: $%.2f  PA: $%.2f", state.Cost.ByRole["builder"].CostUsd,
			state.Cost.ByRole["verifier"].CostUsd, state.Cost.ByRole["pa"].CostUsd),
		" 56: S7/8C Verifier",
	} {
		require.Contains(t, text, want)
	}
}

// testEstimates holds what is left and what it will cost, after pass 40 of 56, to the arithmetic of requirement 002
// §7.3 and §7.4 on the records of that moment.
func testEstimates(t *testing.T, dir string, src figures.Source) {
	var then rundir.PipelineState
	require.NoError(t, json.Unmarshal(read(t, filepath.Join(dir, "_orchestrator", "checkpoints", "cp-S5",
		"state-snapshot.json")), &then))
	require.Len(t, then.PassRecords, 40)
	src.Records = then
	src.State.Status, src.State.Next = run.Running, run.Place{Stage: 0, Round: 6, Step: 0}

	sum, weights, spent := 0.0, 0.0, 0.0
	for i := 0; i < 8; i++ { // the newest weighs 8
		sum += float64(8-i) * float64(then.PassRecords[fmt.Sprint(40-i)].DurationMS)
		weights += float64(8 - i)
	}
	for _, r := range then.PassRecords {
		spent += r.Tokens.EstimatedCostUSD
	}
	f := figures.Of(src, time.Now())
	require.InDelta(t, sum/weights*(16+6*4), float64(f.Timing.Remaining.Nanoseconds())/1e6, 0.1,
		"16 passes, and six cycles of four steps")
	require.InDelta(t, spent, f.Cost.Total, 1e-6)
	require.InDelta(t, spent+(16+6*5)*spent/40, *f.Cost.Projected, 1e-6, "16 passes, and six cycles of five calls")
	require.Equal(t, figures.Set{ID: "S5", Theme: "Grammar + Compositional Rules", Done: 8, Total: 8}, f.Sets[4])
	require.Zero(t, f.Sets[5].Done)
}

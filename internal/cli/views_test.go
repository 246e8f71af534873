package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestViewsShowTheSameStatus compares what the views of a run show of its state.
func TestViewsShowTheSameStatus(t *testing.T) {
	w := newTargetWorld(t)
	w.temporal.open = []string{"bbbb-limit"}
	begun := []step{{run.KindPassStart, run.PassStart{Pass: writing, Attempt: 1}}}
	w.journaledRun(t, "aaaa-unmet", run.WordingStages, append(begun,
		step{run.KindPassEnd, run.PassEnd{Pass: writing, Outcome: run.CategoryOK, Attempts: 1}},
		step{run.KindPhaseEnd, run.PhaseEnd{Key: "write", Outcome: "ok", Repeats: true, Round: 1, Unmet: "verdict == good"}},
		step{run.KindRunEnd, run.RunEnd{Status: run.Done}})...)
	limit := run.LimitedCall{Limit: run.Limit{Account: "claude (1234abcd)"}, Until: "2126-01-02T03:04:05.000Z", N: 1}
	w.journaledRun(t, "bbbb-limit", run.WordingStages, append(begun,
		step{run.KindRunLimited, run.RunLimited{Limited: run.Limited{LimitedCall: limit}}})...)
	for id, shown := range map[string][]string{
		"aaaa-unmet": {"done, not approved"},
		"bbbb-limit": {string(run.WaitingLimit), "for account claude (1234abcd)", ", 1 pass left"},
	} {
		for name, args := range map[string][]string{
			"status": {"status", id}, "diagnose": {"diagnose", id}, "evidence": {"evidence", id},
			"report": {"report", id, "--out", "-"},
		} {
			out, _ := w.here(args...)
			for _, text := range shown {
				require.Contains(t, out, text, name+" of "+id)
			}
		}
	}
}

package pages

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

func TestTextsOfPages(t *testing.T) {
	yes, no := true, false
	for want, all := range map[string][]run.Judged{
		"good": {{Approved: &yes}, {Approved: &yes, Findings: &run.Findings{Blockers: 1}}},
		"bad":  {{Approved: &no}, {Findings: &run.Findings{Blockers: 1}}, {Findings: &run.Findings{ShipReady: &no}}},
		"":     {{}, {Findings: &run.Findings{}}, {Findings: &run.Findings{ShipReady: &yes, Gaps: 2}}},
	} {
		for _, j := range all {
			require.Equal(t, want, verdictClass(&j), "%+v", j)
		}
	}
	require.Equal(t, []string{"Change it: say how", "Continue anyway: say why", "Stop the run"}, []string{
		label(run.ActionRetryFeedback), label(run.ActionContinueWithWaiver), label(run.ActionHalt)})
	require.Equal(t, "usage limit", words("usage_limit"))
	require.Equal(t, map[string]any{"a": 1, "b": 2}, dict("a", 1, "b", 2, "c"))
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	require.Equal(t, "soon", ago("soon", now))
	require.NotEqual(t, ago("2026-01-02T11:00:00.000Z", now), ago("2026-01-01T11:00:00.000Z", now))
}

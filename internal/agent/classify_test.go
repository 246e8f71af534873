package agent

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent/limits"
	"github.com/passbook-run/passbook/run"
)

// TestCauseDecidesRetries describes what happens after a call that the provider did not answer.
func TestCauseDecidesRetries(t *testing.T) {
	for cause, want := range map[limits.Kind]struct {
		category          run.Category
		passes, permanent bool
	}{
		limits.Login:       {run.CategoryAgentExit, false, true},
		limits.Credit:      {run.CategoryAgentExit, false, true},
		limits.Model:       {run.CategoryAgentExit, false, true},
		limits.Plan:        {run.CategoryRateLimit, true, false},
		limits.Rate:        {run.CategoryRateLimit, true, false},
		limits.Overload:    {run.CategoryRateLimit, true, false},
		limits.Output:      {run.CategoryOutputTruncated, false, false},
		limits.Unreachable: {run.CategoryUnreachable, true, false},
		"":                 {run.CategoryAgentExit, false, false},
	} {
		t.Run(string(cause), func(t *testing.T) {
			f := refusal(limits.Limit{Kind: cause}, "said", 1)
			require.Equal(t, want.category, f.Category)
			require.Equal(t, want.passes, f.Cause.Passes())
			require.Equal(t, want.permanent, f.Permanent)
			require.Equal(t, cause, f.Cause)
			require.Contains(t, f.Message, "said")
		})
	}
}

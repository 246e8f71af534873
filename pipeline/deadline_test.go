package pipeline

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseDeadline(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-25T18:00:00Z": "2026-11-25T18:00:00Z", "2026-11-25T18:00:00+01:00": "2026-11-25T17:00:00Z",
		"2026-11-25 18:00 Europe/Berlin": "2026-11-25T17:00:00Z", "2026-07-25 18:00 Europe/Berlin": "2026-07-25T16:00:00Z",
		"2026-11-25 18:00 UTC": "2026-11-25T18:00:00Z",
		"2026-11-25 18:00":     "", "2026-11-25 18:00 Local": "", "tomorrow": "", "": "", "2026-11-25 25:00 UTC": "",
	} {
		at, err := ParseDeadline(text)
		require.Equal(t, want != "", err == nil, text)
		if err == nil {
			require.Equal(t, want, at.Format(time.RFC3339), text)
		}
	}
}

func TestBudgetsAreChecked(t *testing.T) {
	for budget, want := range map[string]string{
		"{calls: 3, hours: 0.5, deadline: 2026-11-25 18:00 Europe/Berlin}": "",
		"{deadline: tomorrow}":               `budget.deadline cannot be read: "tomorrow" is not a time; write it as`,
		"{tokens: 5, per_pass: {tokens: 6}}": "budget.per_pass.tokens is 6, and the budget of the run is 5",
		"{usd: 5, per_pass: {usd: 6}}":       "budget.per_pass.usd is 6, and the budget of the run is 5",
	} {
		src := strings.Replace(runnable, "{usd: 5}", budget, 1)
		def, problems := Parse("x.yaml", []byte(src), folderFor([]byte(src)))
		if want != "" {
			require.Len(t, problems, 1, budget)
			require.ErrorContains(t, problems, want)
			continue
		}
		require.Empty(t, problems)
		require.Equal(t, "3 calls, 0.5 hours, until 2026-11-25 18:00 Europe/Berlin", def.Budget.sentence())
	}
}

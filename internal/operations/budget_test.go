package operations

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
)

func TestBudgetWarnsOfModelsAtRunTime(t *testing.T) {
	for name, row := range map[string]struct {
		agent pipeline.Agent
		usd   float64
		warns bool
	}{
		"no model":       {pipeline.Agent{Run: []string{"codex", "exec"}, Reply: "codex-jsonl"}, 5, true},
		"a model":        {pipeline.Agent{Run: []string{"codex", "exec", "-m", "gpt-5"}, Reply: "codex-jsonl"}, 5, false},
		"a price":        {pipeline.Agent{Reply: "gemini-json", Price: &pipeline.Price{Input: 1}}, 5, false},
		"reported costs": {pipeline.Agent{Reply: "claude-json"}, 5, false},
		"no budget":      {pipeline.Agent{Reply: "gemini-json"}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			plan := &pipeline.Plan{Agents: []pipeline.Agent{row.agent}, Budget: pipeline.Budget{USD: row.usd}}
			require.Equal(t, row.warns, len(BudgetWarnings(plan)) == 1)
		})
	}
}

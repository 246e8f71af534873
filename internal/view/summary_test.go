package view

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestRunWithoutEvents shows a run that no worker has begun: what its claim contains, and no figures.
func TestRunWithoutEvents(t *testing.T) {
	r := Run{Claim: run.Claim{RunID: "r1", Pipeline: "small"}, Effective: run.NewEffectiveStatus("", run.LiveOpen, "")}
	require.Equal(t, []Row{{"Progress", "not begun"}}, r.Work())
	rows := r.Identity()
	require.Contains(t, rows, Row{"Pipeline", "small"})
	for _, row := range rows {
		require.NotContains(t, []string{"Phase", "Started", "Last save"}, row.Name, row)
	}
}

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestToolCallsAreTraced: their rows follow that of the call, and a check and a recovery know them.
func TestToolCallsAreTraced(t *testing.T) {
	w := newTargetWorld(t)
	const call = "tools/g0.001.1.-.1"
	uses := run.ToolUses{Count: 2, First: []run.ToolUse{
		{Name: "Bash", Input: "go test ./...", Digest: "d1", State: "failed"},
		{Name: "Write", Input: "a.go", Digest: "d2", State: "ok"},
	}}
	d := w.journaledRun(t, "tools", "",
		step{run.KindPassStart, run.PassStart{Pass: writing, Call: call, Attempt: 1, Attempts: 1}},
		step{run.KindPassEnd, run.PassEnd{Pass: writing, Call: call, Outcome: run.CategoryOK, Attempts: 1, Tools: &uses,
			LastInRound: true, Validation: run.Validation{Passed: true}, Next: &run.Place{Stage: 1, Round: 1}}})
	text, err := os.ReadFile(d.Path(layout.TracesFile))
	require.NoError(t, err)
	var rows []string
	for line := range strings.Lines(string(text)) {
		var row rundir.ToolRow
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		require.Equal(t, call, row.Call)
		rows = append(rows,
			strings.TrimSpace(fmt.Sprintln(row.Seq, row.Role, row.Tool, row.Input, row.InputDigest, row.State)))
	}
	require.Equal(t, []string{"3 writer", "3 writer Bash go test ./... d1 failed", "3 writer Write a.go d2 ok"}, rows)
	calls, skipped := rundir.ReadTraces(text)
	require.Len(t, calls, 1)
	require.Zero(t, skipped)
	output, _ := w.here("check", d.Root)
	require.NotContains(t, output, layout.TracesFile)
}

package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/passbook-run/passbook/run"
)

// TestContinueAsNew cuts a run into many executions. Nobody can tell from its journal.
func TestContinueAsNew(t *testing.T) {
	t.Parallel()
	plain, cut := newEnv(t), newEnv(t, "PASSBOOK_CONTINUE_AFTER=3")
	one, many := plain.dir("run"), cut.dir("run")
	plain.finish(one)
	cut.finish(many)
	require.Equal(t, timeless(t, plain.undisturbed(one, 0)), timeless(t, cut.undisturbed(many, 0)))

	id := metaOf(t, many).RunID
	c := cut.dial()
	found, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: "WorkflowId = '" +
		id + "'"})
	require.NoError(t, err)
	require.Greater(t, len(found.GetExecutions()), 7, "so many executions for 24 steps")
	require.NotEqual(t, metaOf(t, one).SegmentHead, metaOf(t, many).SegmentHead)
}

// timeless gives the events as text, without what two runs can never have in common: ids, times, durations, digests of
// things that hold them.
func timeless(t *testing.T, events []run.Event) []string {
	t.Helper()
	var out []string
	for _, e := range events {
		var payload any
		require.NoError(t, json.Unmarshal(e.Payload, &payload))
		raw, err := json.Marshal(plainer("", payload))
		require.NoError(t, err)
		phase := "-"
		if e.Phase != nil {
			phase = *e.Phase
		}
		out = append(out, strings.Join([]string{string(e.Kind), phase, string(raw)}, " "))
	}
	return out
}

// plainer blanks the fields that differ between any two runs. Pictures are made by a browser, and their prompt is told
// how many bytes they have.
func plainer(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plainer(k, v[k])
		}
		return v
	case []any:
		for i := range v {
			v[i] = plainer("", v[i])
		}
		return v
	}
	switch key {
	case "run_id", "thread_id", "call", "host", "started_at", "completed_at", "created_at", "duration_ms":
		return "…"
	}
	return v
}

package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// statusOutput is the output of `status --json`.
type statusOutput struct {
	EffectiveStatus run.EffectiveStatus `json:"standing"`
	Snapshot        run.Snapshot        `json:"snapshot"`
	State           run.State           `json:"state"`
	Lag             int64               `json:"lag"`
	Available       []run.Operation     `json:"available_actions"`
}

func (h *environment) status(dir string) statusOutput {
	h.t.Helper()
	var s statusOutput
	text, _ := h.try("status", dir, "--json") // its exit code is that of the run
	require.NoError(h.t, json.Unmarshal([]byte(text), &s), text)
	return s
}

// agree asks everybody who tells a status, while the run rests, stands at a call or is over, and wants one answer.
func (h *environment) agree(c client.Client, dir string, want run.Status) {
	h.t.Helper()
	t := h.t
	output := h.status(dir)
	meta, state := metaOf(t, dir), stateOf(t, dir)
	require.Equal(t, want, output.EffectiveStatus.Status, "shown")
	require.Equal(t, want, output.EffectiveStatus.Recorded, "recorded")
	require.Equal(t, want, output.Snapshot.Status, "snapshot")
	require.Equal(t, want, output.State.Status, "state")
	require.Equal(t, string(want), meta.Status, "meta.json")
	require.Equal(t, want.RFC(), meta.RFCStatus, "RunStore v2")
	require.Equal(t, want, meta.State.Status, "meta.json, state")
	switch want.Class() {
	case run.Live:
		require.Equal(t, meta.State.Phase, state.CurrentPhase, "state.json")
	case run.OperatorPause:
		require.Equal(t, "paused", state.CurrentPhase, "state.json")
	default:
		require.Equal(t, map[run.Status]string{run.Done: "complete", run.Cancelled: "failed",
			run.Failed: "failed"}[want], state.CurrentPhase, "state.json")
	}

	v, err := c.QueryWorkflow(t.Context(), meta.RunID, "", workflows.QueryStatus)
	require.NoError(t, err)
	var live workflows.StatusAnswer
	require.NoError(t, v.Get(&live))
	require.Equal(t, want, live.Status, "query")
	require.Equal(t, output.Available, live.AvailableActions, "query")
	v, err = c.QueryWorkflow(t.Context(), meta.RunID, "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var shown sdkpb.WorkflowMetadata
	require.NoError(t, v.Get(&shown))
	require.Contains(t, shown.CurrentDetails, "- available actions: "+listed(output.Available)+"\n", "Web UI")
	require.Contains(t, shown.String(), "starter amend "+meta.RunID+" --config FILE", "Web UI, signals")

	d, err := c.DescribeWorkflow(t.Context(), meta.RunID, "")
	require.NoError(t, err)
	status, _ := d.TypedSearchAttributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword("PassbookStatus"))
	require.Equal(t, string(want), status, "search attribute")
	stage, _ := d.TypedSearchAttributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword("PassbookStage"))
	require.Equal(t, meta.State.Phase, stage, "search attribute of the stage")

	h.answers(c, meta.RunID, want)
}

func listed(all []run.Operation) string {
	names := make([]string, len(all))
	for i, op := range all {
		names[i] = string(op)
	}
	return strings.Join(names, ", ")
}

// answers compares the answer to an Update: a budget that stays as it is.
func (h *environment) answers(c client.Client, id string, want run.Status) {
	h.t.Helper()
	t := h.t
	ack, err := send(t, c, id, workflows.VerbBudget, workflows.Message{USD: 2})
	if want.Closed() {
		require.Error(t, err, "a run that is over answers no Update")
		return
	}
	require.NoError(t, err)
	require.Equal(t, want, ack.Status, "answer to an Update")
}

// TestOneStatusEverywhere stops the run after every step and asks everybody where it stands, and once more while each
// call is out.
func TestOneStatusEverywhere(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("3", "600"))
	dir := h.dir("run")
	h.starter("server", "start")
	h.begin(dir)
	h.mid("003")
	c := h.dial()
	h.agree(c, dir, run.Running)
	h.starter("pause", dir, "--now")
	rests := 0
	for ; ; rests++ {
		until(t, "the run rests", func() bool { return statusIs(dir, run.Paused) || statusIs(dir, run.Done) })
		if statusIs(dir, run.Done) {
			break
		}
		h.agree(c, dir, run.Paused)
		h.spoil("[]\n")
		seq := metaOf(t, dir).Events.Seq
		id := metaOf(t, dir).RunID
		_, err := send(t, c, id, workflows.VerbResume, workflows.Message{})
		require.NoError(t, err)
		until(t, "the run did a step", func() bool {
			return metaOf(t, dir).Events.Seq > seq+2 ||
				statusIs(dir, run.Done)
		})
		if _, err := send(t, c, id, workflows.VerbPause, workflows.Message{}); err != nil { // it was through by then
			until(t, "the run is over", func() bool { return statusIs(dir, run.Done) })
		}
	}
	t.Logf("%d rests", rests)
	require.GreaterOrEqual(t, rests, 10, "the run was seldom caught between its steps")
	// a run records its end a moment before its workflow closes, and the Web UI shows it then
	require.NoError(t, c.GetWorkflow(t.Context(), metaOf(t, dir).RunID, "").Get(t.Context(), nil))
	h.agree(c, dir, run.Done)
	h.undisturbed(dir, 1)
}

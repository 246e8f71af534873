package e2e_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	workflowservice "go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// TestHostileSignals sends an open question what no program of ours would: nothing of it stops, wedges or decides the
// run, and the right answer, sent a thousand times while nobody listens, is applied once.
func TestHostileSignals(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir := h.asksAboutThePlan("run")
	c, id := h.dial(), metaOf(t, dir).RunID
	raw := func(encoding, data string) error {
		_, err := c.WorkflowService().SignalWorkflowExecution(t.Context(),
			&workflowservice.SignalWorkflowExecutionRequest{
				Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
				SignalName: workflows.VerbDecide,
				Input: &commonpb.Payloads{
					Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte(encoding)}, Data: []byte(data)}},
				},
			})
		return err
	}
	for _, m := range []struct{ encoding, data string }{
		{"json/plain", "no JSON"}, {"json/plain", `["continue"]`}, {"json/plain", `{"action":7}`},
		{"json/plain", `{"action":"perhaps"}`},
		{"json/plain", `{"action":"continue","id":"plan:9:9:other"}`}, {"json/plain", `{"action":"retry_feedback"}`},
		{"binary/null", ""},
		{"something/else", "\x00\xff"}, {"json/plain",
			`{"action":"continue","feedback":"` + strings.Repeat("x", 60<<10) + `"}`},
	} {
		require.NoError(t, raw(m.encoding, m.data), "%s %.20s", m.encoding, m.data)
	}
	require.Error(t, raw("json/plain", `{"action":"retry_feedback","feedback":"`+strings.Repeat("x", 1<<20)+`"}`),
		"the server takes no megabyte")
	until(t, "each is refused", func() bool {
		return len(of[run.DecisionRefused](eventsOf(t, dir),
			run.KindDecisionRefused)) == 9
	})
	require.True(t, statusIs(dir, run.AwaitingPhaseHandoff))

	h.kill(h.worker())
	for range 1000 {
		require.NoError(t, raw("json/plain", `{"action":"continue","by":"ann"}`))
	}
	h.starter("server", "start")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	require.Len(t, of[run.QuestionDecided](eventsOf(t, dir), run.KindHandoffDecided), 1)
	h.sound(dir)
}

// TestTwoOppositeDecisions race: one is taken, and the other is told so.
func TestTwoOppositeDecisions(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir := h.asksAboutThePlan("run")
	c, id := h.dial(), metaOf(t, dir).RunID
	open, _ := metaOf(t, dir).State.Asks()
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, action := range []string{run.ActionContinue, run.ActionHalt} {
		wg.Go(func() {
			_, errs[i] = send(t, c, id, workflows.VerbDecide,
				workflows.Message{Action: action, ID: open.ID, By: action})
		})
	}
	wg.Wait()
	require.NotEqual(t, errs[0] == nil, errs[1] == nil, "one of two counts: %v, %v", errs[0], errs[1])
	want := run.Done
	if errs[0] != nil {
		want = run.Halted
	}
	until(t, "the run is over", func() bool { return statusIs(dir, want) })
	require.Len(t, of[run.QuestionDecided](eventsOf(t, dir), run.KindHandoffDecided), 1)
	h.sound(dir)
}

// TestResetBeforeAnAnswer goes back to before an answer that was given: the run, which was halted, asks again, whatever
// Temporal brings back of the messages.
func TestResetBeforeAnAnswer(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir := h.asksAboutThePlan("run")
	c, id := h.dial(), metaOf(t, dir).RunID
	first, _ := metaOf(t, dir).State.Asks()
	_, err := send(t, c, id, workflows.VerbDecide,
		workflows.Message{Action: run.ActionRetryFeedback, Feedback: "shorter"})
	require.NoError(t, err)
	until(t, "it asks again", func() bool { q, open := metaOf(t, dir).State.Asks(); return open && q.ID != first.ID })
	second, _ := metaOf(t, dir).State.Asks()
	require.NoError(t, c.SignalWorkflow(t.Context(), id, "", workflows.VerbDecide,
		workflows.Message{Action: run.ActionHalt}))
	until(t, "the run is halted", func() bool { return statusIs(dir, run.Halted) })
	_, err = c.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id}, Reason: "test",
		RequestId:                 "1",
		WorkflowTaskFinishEventId: tasks(t, c, id)[0],
	})
	require.NoError(t, err)
	until(t, "it asks again", func() bool {
		q, open := metaOf(t, dir).State.Asks()
		return statusIs(dir, run.AwaitingPhaseHandoff) && open && q.ID != second.ID && q.ID != first.ID
	})
	h.starter("decide", dir, "--action", "continue")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	h.sound(dir)
}

// TestResetToAnOpenQuestion goes back to where the question was open: what Temporal brings back of the answers is for
// it to be asked again.
func TestResetToAnOpenQuestion(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(c client.Client, id string, q run.Question) error{
		"signal without an id": func(c client.Client, id string, _ run.Question) error {
			return c.SignalWorkflow(t.Context(), id, "", workflows.VerbDecide,
				workflows.Message{Action: run.ActionHalt})
		},
		"signal": func(c client.Client, id string, q run.Question) error {
			return c.SignalWorkflow(t.Context(), id, "", workflows.VerbDecide,
				workflows.Message{Action: run.ActionHalt, ID: q.ID})
		},
		"Update": func(c client.Client, id string, q run.Question) error {
			_, err := send(t, c, id, workflows.VerbDecide, workflows.Message{Action: run.ActionHalt, ID: q.ID})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newEnv(t)
			dir := h.asksAboutThePlan("run")
			c, id := h.dial(), metaOf(t, dir).RunID
			first, _ := metaOf(t, dir).State.Asks()
			done := tasks(t, c, id)
			require.NoError(t, answer(c, id, first))
			until(t, "the run is halted", func() bool { return statusIs(dir, run.Halted) })
			_, err := c.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
				Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id}, Reason: "test",
				RequestId: "1", WorkflowTaskFinishEventId: done[len(done)-1],
			})
			require.NoError(t, err)
			until(t, "it asks again", func() bool { return statusIs(dir, run.AwaitingPhaseHandoff) })
			h.starter("decide", dir, "--action", "continue")
			until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
			h.sound(dir)
		})
	}
}

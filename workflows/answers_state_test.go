package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
)

// TestOneLine cuts a command after its first line, which may be empty.
func TestOneLine(t *testing.T) {
	for s, want := range map[string]string{"make": "make", "make\nlint": "make…", "\nmake": "…", "": ""} {
		require.Equal(t, want, oneLine(s))
	}
}

// TestDecisionNamesItsQuestion: a message without an id answers the open question implicitly.
func TestDecisionNamesItsQuestion(t *testing.T) {
	q := run.Question{ID: "q-1", Kind: run.QuestionGate}
	for name, row := range map[string]struct {
		m        Message
		implicit bool
	}{
		"an id": {Message{ID: "q-1"}, false}, "no id": {Message{Reason: "why"}, true},
		"an id that was found": {Message{ID: "q-1", Implicit: true}, true},
	} {
		e := engineOf(run.State{Seq: 6})
		withWorkflow(t, nil, func(ctx workflow.Context) error {
			d := e.control.decisionEvent(ctx, q, row.m)
			require.Equal(t, []any{"q-1", "q-1#7", row.implicit}, []any{d.ID, d.DecisionID, d.Implicit}, name)
			return nil
		})
	}
}

// TestAcceptedPlan: only a hand-off that continues accepts the output that it was about.
func TestAcceptedPlan(t *testing.T) {
	handoff := func(action, digest string) *run.Decided {
		return &run.Decided{Kind: run.QuestionHandoff, Action: action, Digest: digest}
	}
	for name, row := range map[string]struct {
		decided *run.Decided
		want    bool
	}{
		"continue":       {handoff(run.ActionContinue, "plan"), true},
		"a waiver":       {handoff(run.ActionContinueWithWaiver, "plan"), true},
		"another answer": {handoff(run.ActionHalt, "plan"), false},
		"another output": {handoff(run.ActionContinue, "other"), false},
		"no output":      {handoff(run.ActionContinue, ""), false},
		"no decision":    {nil, false},
		"a gate":         {&run.Decided{Kind: run.QuestionGate, Action: run.ActionContinue, Digest: "plan"}, false},
	} {
		e := engineOf(run.State{Decided: row.decided, Artifact: &run.Blob{Digest: "plan"}})
		withWorkflow(t, nil, func(ctx workflow.Context) error {
			require.Equal(t, row.want, e.accepted(ctx), name)
			return nil
		})
	}
}

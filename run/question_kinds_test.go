package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestQuestionKindsAreComplete: each row of the table has all that the program asks of it, and each action that is
// offered is an answer.
func TestQuestionKindsAreComplete(t *testing.T) {
	events := map[run.Kind]bool{}
	for _, s := range run.QuestionKinds() {
		require.NotEmpty(t, s.Text, s.Kind)
		require.Equal(t, run.OperatorPause, s.Status.Class(), s.Kind)
		require.NoError(t, run.Transition(run.Running, s.Status), s.Kind)
		for _, k := range []run.Kind{s.Requested, s.Decided} {
			require.NotEmpty(t, k, s.Kind)
			require.NotContains(t, events, k)
			events[k] = true
		}
		asked, ok := s.Requested.Asks()
		require.True(t, ok && asked.Kind == s.Kind, s.Kind)
		answered, ok := s.Decided.Answers()
		require.True(t, ok && answered.Kind == s.Kind, s.Kind)
		require.Equal(t, s.Requested, s.Kind.Spec().Requested)
		require.NotEmpty(t, s.Offers, s.Kind)
		for _, o := range s.Offers {
			q := run.Question{Kind: s.Kind, Actions: o.Operator}
			expired, _ := s.Answer(q.Halts())
			require.True(t, expired.Effect.Has(run.EndsHalted), "%s, %s", s.Kind, o.Trigger)
			require.Contains(t, o.Operator, q.Halts(), "%s, %s: what an expiry chooses is offered", s.Kind, o.Trigger)
			for _, action := range o.Operator {
				answer, ok := s.Answer(action)
				require.True(t, ok && answer.Meaning != "", "%s, %s: %s", s.Kind, o.Trigger, action)
				require.True(t, run.KnownAction(action))
				require.Equal(t, answer.Meaning, q.Meaning(action))
				if answer.Effect.Has(run.EndsHalted) {
					first := run.Question{Kind: s.Kind, Actions: []string{"x", action, run.ActionHalt}}
					require.Equal(t, action, first.Halts())
				}
				require.Equal(t, run.NeedsFeedback(action), answer.Effect.Has(run.TakesFeedback), "%s: %s", s.Kind,
					action)
			}
			if o.Expiry != "" {
				require.Contains(t, o.Operator, o.Expiry, "%s, %s", s.Kind, o.Trigger)
			}
		}
	}
	require.False(t, run.KnownAction("perhaps"))
	require.Equal(t, run.ActionHalt, run.Question{}.Halts())
	none, ok := run.QuestionGate.Spec().Offer("none")
	require.False(t, ok)
	require.Equal(t, run.Offer{Trigger: "none"}, none)
	require.Equal(t, "t", run.Question{Text: "t", Phase: "p"}.Words())
	require.Equal(t, "p", run.Question{Phase: "p"}.Words())
	require.Equal(t, run.QuestionGate.Spec().Text, run.Question{Kind: run.QuestionGate}.Words())
	_, asks := run.KindPassStart.Asks()
	require.False(t, asks)
}

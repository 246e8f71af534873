package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// verify stands for the identities of a worker: a signature's value names who signed.
func (w *harness) verify(_ []byte, s *contract.Signature) (auth, refused string) {
	switch {
	case s == nil && w.signed:
		return contract.AuthNone, "it is not signed"
	case s == nil:
		return contract.AuthNone, ""
	case s.Value == "":
		return contract.AuthNone, "its signature does not match"
	}
	return "key " + s.Value, ""
}

// The journal has who signed a decision, beside the name that was given. A token counts only with a signature.
func TestDecisionHasItsSender(t *testing.T) {
	w := newHarness(t, anAsk)
	w.agent.scores = []float64{3}
	w.signed = true
	by := func(value string) message { return message{"key": "public", "value": value} }
	var unsigned, wrong *reply
	w.dir.when(run.KindHandoffRequested, func() {
		w.signal("budget", message{"usd": 9, "signature": by("ada")})
		unsigned = w.update("decide", message{"action": "continue", "by": "eve"})
		wrong = w.update("decide", message{"action": "continue", "by": "eve", "signature": by("")})
		w.signal("decide", message{"action": "halt", "by": "eve", "via": "token ci"})
		w.signal("decide", message{"action": "continue", "by": "the operator", "via": "token ci", "signature": by("ada")})
	})
	w.done()
	require.ErrorContains(t, unsigned.err, "the message is refused: it is not signed")
	require.ErrorContains(t, wrong.err, "the message is refused: its signature does not match")
	require.Equal(t, "key ada", payloads[run.BudgetEvent](w, run.KindBudgetRaised)[0].Auth)
	decided := payloads[run.QuestionDecided](w, run.KindHandoffDecided)
	require.Len(t, decided, 1)
	require.Equal(t, "the operator", decided[0].DecidedBy)
	require.Equal(t, "token ci", decided[0].Auth)
	require.Equal(t, []run.DecisionRefused{{
		Verb: "decide", By: "eve", Auth: contract.AuthNone,
		Reason: "the message is refused: it is not signed (type: Refused, retryable: false)",
	}}, payloads[run.DecisionRefused](w, run.KindDecisionRefused))
}

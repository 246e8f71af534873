package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

func TestAnswersAreThoseOfOneQuestion(t *testing.T) {
	var none *Answers
	q := run.Question{ID: "h-1", RequestedAt: "2026-01-02T03:04:05.000Z"}
	none.Keep("r", q, Given{})
	_, ok := none.get("r", q)
	require.False(t, ok)
	a := &Answers{}
	a.Keep("r", q, Given{Action: "continue"})
	g, ok := a.get("r", q)
	require.True(t, ok)
	require.Equal(t, "continue", g.Action)
	again := q
	again.RequestedAt = "2026-01-02T03:05:05.000Z"
	for _, other := range []run.Question{again, {ID: "h-2", RequestedAt: q.RequestedAt}} {
		_, ok = a.get("r", other)
		require.False(t, ok, "a question that is asked again has no answer")
	}
	_, ok = a.get("r2", q)
	require.False(t, ok)
	a.Keep("r", again, Given{Action: "halt"})
	_, ok = a.get("r", q)
	require.False(t, ok, "the answer to an earlier question is of no use")
}

func TestAnotherAnswerIsRefused(t *testing.T) {
	q := run.Question{ID: "h-1"}
	g := Given{Action: "retry_feedback", Feedback: "shorter", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	require.NoError(t, g.again(q, DecideInput{Action: "retry_feedback", Feedback: "shorter"}))
	for _, in := range []DecideInput{{Action: "continue"}, {Action: "retry_feedback", Feedback: "longer"}} {
		err := g.again(q, in)
		var refused *operations.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, CodeNotAllowed, CodeOf(err))
		require.ErrorContains(t, err, "question h-1 was answered with retry_feedback at 2026-01-02T03:04:05.000Z")
	}
}

package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// TestActionsAfterACheckpoint lists the external actions that a revert or a fork executes again.
func TestActionsAfterACheckpoint(t *testing.T) {
	action := run.Pass{Step: "write/1", InRound: 1, OfRound: 1, Round: 1, Role: "command", Gives: "outcome", Title: "c",
		Description: "c"}
	start := func(p run.Pass, call, effect string) event {
		return event{run.KindPassStart, run.PassStart{Pass: p, Call: call, Effect: effect, Attempt: 1, Attempts: 3}}
	}
	d := newHost(t).journaledRun(t, "acts", "", start(writing, "acts/1", ""), start(action, "acts/2", run.EffectExternal),
		start(action, "acts/3", run.EffectExternal), event{run.KindPassAttempt, run.PassAttempt{Pass: action,
			Call: "acts/3", Attempt: 1, Category: run.CategoryUnknown, Judged: true}})
	again, err := operations.ActionsAfter(d, 3)
	require.NoError(t, err)
	require.Equal(t, []string{"step write/1 is an external action that was executed after the checkpoint (failed, " +
		"call acts/3): its effect stays, and the step is executed again"}, again)
	again, err = operations.ActionsAfter(d, 1)
	require.NoError(t, err)
	require.Len(t, again, 2)
}

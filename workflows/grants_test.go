package workflows_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/grants"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// checksGrants fails a test whose workflow schedules an activity with an input that is not granted.
type checksGrants struct {
	interceptor.WorkerInterceptorBase
	w *harness
}

func (c *checksGrants) InterceptActivity(_ context.Context,
	next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &checksActivity{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, w: c.w}
}

type checksActivity struct {
	interceptor.ActivityInboundInterceptorBase
	w *harness
}

func (c *checksActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	granted, ok := in.Args[0].(contract.Granted)
	if !ok {
		c.w.t.Errorf("%T has no permissions", in.Args[0])
		return nil, nil
	}
	err := c.w.key.Check(granted)
	var refused *grants.RefusedError
	switch {
	case errors.As(err, &refused) && !c.w.ungranted:
		c.w.t.Errorf("%T: %v", in.Args[0], err)
	case errors.As(err, &refused) && refused.Missing:
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrBadInput, nil)
	case err != nil:
		return nil, temporal.NewApplicationError(err.Error(), contract.ErrNotGranted)
	}
	return c.Next.ExecuteActivity(ctx, in)
}

// sign signs the input of an execution as an operator's program does.
func (w *harness) sign() {
	if w.in.Snapshot != nil && w.in.Reopen == nil {
		return // it continues an execution, and has its grants
	}
	epoch := max(w.in.Start.Epoch, 1)
	if w.in.Reopen != nil {
		epoch = w.in.Reopen.Epoch
		if m := w.in.Reopen.Amend; m != nil {
			w.in.Plans = append(w.in.Plans, w.planGrants(*m.Plan).Plans...)
		}
	}
	w.in.EpochGrant = w.key.Sign(contract.EpochPermission(w.in.Target.RunID, epoch, ""))
	w.in.Target.Grant = w.key.Sign(w.in.Target.Permission())
	w.in.Plans = contract.Grants{Plans: w.in.Plans}.With(w.planGrants(w.in.Start.PlanRef()).Plans).Plans
	for _, a := range w.in.Start.Amendments {
		w.in.Plans = append(w.in.Plans, w.planGrants(a.New).Plans...)
	}
}

func (w *harness) planGrants(ref run.PlanRef) contract.Grants {
	return contract.Grants{Plans: []contract.PlanUse{w.key.Plan(w.in.Target, ref.Plan, ref.Inputs)}}
}

// withGrants adds what an operator's program adds to an amendment.
func (w *harness) withGrants(m message) message {
	if ref, ok := m["plan"].(run.PlanRef); ok && m["grants"] == nil {
		m["grants"] = w.planGrants(ref)
	}
	return m
}

// newKey replaces the key of the host.
func (w *harness) newKey() {
	w.t.Helper()
	var err error
	w.key, err = grants.Load(config.Settings{StateDir: w.t.TempDir()})
	require.NoError(w.t, err)
	w.dir.key = w.key
}

// A plan that no program of the host granted is not adopted.
func TestAmendmentNeedsGrant(t *testing.T) {
	w := amendable(t, twoPasses)
	w.ungranted = true
	next := w.given(strings.Replace(twoPasses, "[scripted]", "[sh, -c, id]", 1), "second")
	var none, forged *reply
	w.agent.will(call(1, 1), after(func() {
		none = w.update("amend", message{"plan": next, "grants": contract.Grants{}})
		u := contract.PlanUse{Plan: next.Plan, Inputs: next.Inputs, PlanGrant: w.in.Plans[0].PlanGrant}
		forged = w.update("amend", message{"plan": next, "grants": contract.Grants{Plans: []contract.PlanUse{u}}})
	}))
	w.done()
	require.ErrorContains(t, none.err, "it has no grant")
	require.ErrorContains(t, forged.err, "was not granted with the key")
	require.Empty(t, payloads[run.RunAmended](w, run.KindRunAmended))
}

// A run whose host has another key waits, and continues with the grants in a resume.
func TestRunContinuesWithNewGrants(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.ungranted = true
	var early, renewed *reply
	w.agent.will(call(1, 1), after(func() {
		early = w.update("resume", message{"grants": w.planGrants(w.in.Start.PlanRef())})
		w.newKey()
		w.env.RegisterDelayedCallback(func() {
			g := w.planGrants(w.in.Start.PlanRef())
			g.Target = w.key.Sign(w.in.Target.Permission())
			go func() { renewed = w.update("resume", message{"grants": g}) }()
		}, time.Minute)
	}))
	w.done()
	require.ErrorContains(t, early.refused, "only a paused run can be resumed")
	require.Equal(t, "continuing with new grants", renewed.ack.Message)
	require.Empty(t, payloads[run.RunPaused](w, run.KindRunPaused))
}

// An input with the state of an earlier execution counts only in one that Temporal continued.
func TestInputWithStateNeedsEarlierExecution(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.cutOff()
	w.in.Snapshot = &workflows.Snapshot{State: w.dir.state(t), Tail: w.dir.tail()}
	w.fresh()
	w.env.SetContinuedExecutionRunID("")
	_, err := w.execute()
	require.ErrorContains(t, err, "carry is only for an execution that continues another one")
}

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

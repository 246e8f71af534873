package activities

import (
	"context"
	"errors"
	"os"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/agent/gate"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// RunPass makes one call or finds its answer: in the store, in this worker, in another one, or in the output of a
// dead one. The child is independent of the activity's context and of this worker: only an operator or its own
// limits end it.
func (a *Activities) RunPass(ctx context.Context, in contract.PassInput) (contract.PassResult, error) {
	in.Call = callID(in)
	res, err := a.runPass(ctx, in)
	a.settleCosts(ctx, in)
	return res, a.withHost(in.Call, a.withCost(ctx, in, err))
}

func (a *Activities) runPass(ctx context.Context, in contract.PassInput) (contract.PassResult, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.PassResult{}, err
	}
	l := calls.Ledger{Store: s, Call: in.Call}
	stop := a.heartbeat(ctx, in)
	defer stop()
	a.cfg.OnPoint(PointRequested, in.Call)
	ans, err := l.Result(ctx)
	if err != nil {
		return contract.PassResult{}, err
	}
	if ans != nil {
		a.tidyDeliveries(ctx, l, in, ans)
	} else if ans, err = a.recordedAnswer(ctx, l, in); err != nil {
		return contract.PassResult{}, err
	}
	if ans != nil {
		return a.passResult(ctx, s, in, ans, true, false)
	}
	if in.RecordedOnly {
		return contract.PassResult{Unrecorded: true}, nil
	}
	ans, joined, err := a.obtain(ctx, l, in)
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		return refused.result(), nil
	}
	if unknown := (*unknownEffectError)(nil); errors.As(err, &unknown) {
		return unknown.result(), nil
	}
	if errors.Is(err, errHandedOver) {
		return contract.PassResult{HandedOver: a.cfg.Host}, nil
	}
	if other := (*claimedError)(nil); errors.As(err, &other) {
		return contract.PassResult{ClaimedBy: &other.HostClaim}, nil
	}
	if err != nil {
		return contract.PassResult{}, err
	}
	return a.passResult(ctx, s, in, ans, false, joined)
}

// callID returns the call id with a digest of the question: after a reset or an edit the same step asks something
// else.
func callID(in contract.PassInput) string {
	question := in.Prompt.Original() + " " + run.DigestOf(in.Artifact) + " " + run.DigestOf(in.Pictures)
	if in.Tree != nil {
		question += " " + in.Tree.Tree.Digest
	}
	if in.Session != nil {
		question += " " + in.Session.Digest
	}
	if in.DecisionID != "" {
		question += " " + in.DecisionID
	}
	return in.Call + "." + string(store.DigestOf([]byte(question)))[:12]
}

// obtain returns the call's answer, and starts a process only if there is none. If another worker claims the call
// meanwhile, it retries.
func (a *Activities) obtain(ctx context.Context, l calls.Ledger,
	in contract.PassInput) (ans *calls.Answer, joined bool, err error) {
	for {
		ans, joined, err = a.obtainOnce(ctx, l, in)
		if errors.Is(err, gate.ErrBusy) {
			if err = a.waitForFirst(ctx); err == nil {
				continue
			}
		}
		var none *noAnswerError
		if again := errors.As(err, &none) && none.again && ctx.Err() == nil; !again && !errors.Is(err, calls.ErrTaken) {
			return ans, joined, err
		}
	}
}

func (a *Activities) obtainOnce(ctx context.Context, l calls.Ledger,
	in contract.PassInput) (ans *calls.Answer, joined bool, err error) {
	deliveries, start := 0, startFunc(nil)
	if !a.isRunning(in.Call) {
		ans, deliveries, start, err = a.findExisting(ctx, l, in)
		if ans != nil || err != nil {
			return ans, ans != nil && !ans.Recovered, err
		}
	}
	select {
	case <-a.handover:
		return nil, false, errHandedOver
	default:
	}
	adopted := start != nil
	if !adopted {
		start = func(awake *os.File) (*runningCall, *agent.Child, error) {
			return a.launch(ctx, l, in, deliveries+1, awake)
		}
	}
	st, joined, err := a.startOrJoin(ctx, l, in, start)
	joined = joined || adopted
	if err != nil {
		return nil, joined, err
	}
	ans, err = a.await(ctx, in, st)
	if ans == nil && err == nil { // it ended without an answer just as it was joined
		err = errIfStopping(nil)
	}
	return ans, joined, err
}

// errHandedOver ends a delivery that the next worker of this host continues.
var errHandedOver = errors.New("the call was handed over to the next worker")

// await waits for a call. An operator's decision ends the child; a lost context or a handover leaves it running.
func (a *Activities) await(ctx context.Context, in contract.PassInput, st *runningCall) (*calls.Answer, error) {
	select {
	case <-st.done:
		return st.ans, st.err
	case <-a.handover: // the call is left alone unless its child has ended
		<-st.done
		return st.ans, st.err
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	switch {
	case temporal.IsCanceledError(cause), errors.Is(cause, activity.ErrActivityPaused),
		errors.Is(cause, activity.ErrActivityReset):
		a.cancelCall(ctx, in.Call, "cancelled by an operator")
		<-st.done
		if st.ans != nil {
			return st.ans, nil // it had answered: the answer counts
		}
		details := a.endedCost(ctx, in, st.err)
		if temporal.IsCanceledError(cause) {
			return nil, temporal.NewCanceledError(details...)
		}
		kind := contract.ErrForced
		if errors.Is(cause, activity.ErrActivityPaused) {
			kind = contract.ErrPaused
		}
		return nil, temporal.NewNonRetryableApplicationError(cause.Error(), kind, cause, details...)
	case errors.Is(cause, worker.ErrWorkerShutdown):
		a.cancelCall(ctx, in.Call, "the worker stops")
		<-st.done
		return st.ans, errIfStopping(st.ans)
	}
	return nil, cause
}

// cancelCall asks the supervisor to end a call's agent.
func (a *Activities) cancelCall(ctx context.Context, call, cause string) {
	if _, err := a.inFlight.Kill(call, cause); err != nil && activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("ask the supervisor to stop the agent", "call", call, "error", err.Error())
	}
}

func errIfStopping(ans *calls.Answer) error {
	if ans != nil {
		return nil
	}
	return temporal.NewNonRetryableApplicationError("the worker stopped before the agent answered",
		contract.ErrWorkerStopping, nil)
}

// heartbeat sends heartbeats until stop: where the call runs and the size of the reply.
func (a *Activities) heartbeat(ctx context.Context, in contract.PassInput) (stop func()) {
	return startHeartbeat(ctx, in.HeartbeatMS, func() any {
		return contract.Heartbeat{Host: a.cfg.Host, Call: in.Call, Bytes: a.replySize(in.Call)}
	})
}

// passResult returns the result of an answer. The same answer always has the same result; superseded results are
// added.
func (a *Activities) passResult(ctx context.Context, s *store.Store, in contract.PassInput, ans *calls.Answer,
	reused, joined bool) (contract.PassResult, error) {
	res, err := a.evaluate(ctx, s, in, ans)
	limitTexts(&res)
	res.Reused, res.Joined = reused || ans.Recovered, joined
	if ans.Source != "" { // it was paid for at its source
		res.Source, res.SourceUSD, res.Spend = ans.Source, res.Spend.USD, run.Spend{Model: res.Spend.Model}
	}
	if err == nil {
		err = a.settleAccount(ctx, s, in, ans, &res)
	}
	if err == nil {
		res.Superseded, err = calls.SupersededSince(ctx, s, in)
	}
	return res, err
}

// endedCost returns the details of the error of a call that was ended: its cost, and the notes of deliveries that the
// run has not accounted for. Where the notes contain the cost, it is empty.
func (a *Activities) endedCost(ctx context.Context, in contract.PassInput, err error) []any {
	unknown := run.Spend{Known: run.CostUnknown}
	if none := (*noAnswerError)(nil); !errors.As(err, &none) || none.unnoted {
		return []any{unknown}
	}
	ctx = context.WithoutCancel(ctx)
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return []any{unknown}
	}
	notes, err := calls.SupersededSince(ctx, s, in)
	if err != nil {
		return []any{unknown}
	}
	return []any{run.Spend{}, notes}
}

// withCost adds to the error of a delivery that ended without an answer what it cost.
func (a *Activities) withCost(ctx context.Context, in contract.PassInput, err error) error {
	if none := (*noAnswerError)(nil); !errors.As(err, &none) || none.unnoted {
		return err
	}
	return temporal.NewApplicationErrorWithOptions(err.Error(), contract.ErrNoAnswer, temporal.ApplicationErrorOptions{
		Cause: err, Details: a.endedCost(ctx, in, err),
	})
}

package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/work"
)

// RunPass makes one call, or finds its answer: in the store, in this worker, in another one, or in the files of a dead one. The child does
// not hang on the activity's context, nor on this worker: only a person or its own bounds end it.
func (a *Activities) RunPass(ctx context.Context, in work.PassInput) (work.PassResult, error) {
	in.Call = asked(in)
	res, err := a.runPass(ctx, in)
	return res, a.held(in.Call, err)
}

func (a *Activities) runPass(ctx context.Context, in work.PassInput) (work.PassResult, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return work.PassResult{}, err
	}
	l := ledger{s: s, call: in.Call}
	stop := a.heartbeat(ctx, in)
	defer stop()
	a.cfg.Reached(Asked, in.Call)
	ans, err := l.result(ctx)
	if err != nil {
		return work.PassResult{}, err
	}
	if ans != nil {
		a.tidy(ctx, l, in, ans)
	} else if ans, err = a.recorded(ctx, l, in); err != nil {
		return work.PassResult{}, err
	}
	if ans != nil {
		return a.judged(ctx, s, in, ans, true, false)
	}
	if in.Only {
		return work.PassResult{Unrecorded: true}, nil
	}
	ans, joined, err := a.obtain(ctx, l, in)
	if errors.Is(err, errHandedOver) {
		return work.PassResult{HandedOver: a.cfg.Host}, nil
	}
	if other := (*claimedElsewhere)(nil); errors.As(err, &other) {
		return work.PassResult{Elsewhere: &other.Elsewhere}, nil
	}
	if err != nil {
		return work.PassResult{}, err
	}
	return a.judged(ctx, s, in, ans, false, joined)
}

// asked is the call's id with a digest of the question: after a reset or an edit the same step asks something else, and the answer to
// another question is no answer.
func asked(in work.PassInput) string {
	question := in.Prompt.Original() + " " + run.DigestOf(in.Artifact) + " " + run.DigestOf(in.Pictures)
	if in.Tree != nil {
		question += " " + in.Tree.Tree.Digest
	}
	if in.Again != "" {
		question += " " + in.Again
	}
	return in.Call + "." + string(store.DigestOf([]byte(question)))[:12]
}

// obtain waits for the call's answer, starting a process only if nobody else has. If another worker claims the call at this very moment, it
// looks again.
func (a *Activities) obtain(ctx context.Context, l ledger, in work.PassInput) (ans *answer, joined bool, err error) {
	for {
		ans, joined, err = a.obtainOnce(ctx, l, in)
		if !errors.Is(err, errTaken) {
			return ans, joined, err
		}
	}
}

func (a *Activities) obtainOnce(ctx context.Context, l ledger, in work.PassInput) (ans *answer, joined bool, err error) {
	deliveries, start := 0, starter(nil)
	if !a.flying(in.Call) {
		ans, deliveries, start, err = a.inherit(ctx, l, in)
		if ans != nil || err != nil {
			return ans, ans != nil && !ans.Recovered, err
		}
	}
	select {
	case <-a.over:
		return nil, false, errHandedOver
	default:
	}
	adopted := start != nil
	if !adopted {
		start = func() (*settlement, *agent.Child, error) { return a.launch(ctx, l, in, deliveries+1) }
	}
	st, joined, err := a.fly(ctx, l, in, start)
	joined = joined || adopted
	if err != nil {
		return nil, joined, err
	}
	ans, err = a.await(ctx, in, st)
	if ans == nil && err == nil { // it ended without an answer just as it was joined
		err = orStopping(nil)
	}
	return ans, joined, err
}

// errHandedOver says that this worker leaves the call to the next one of its host.
var errHandedOver = errors.New("the call is handed over to the next worker")

// await waits for a flight. An operator's decision ends the child; a lost context, and a worker that hands over, leave it running.
func (a *Activities) await(ctx context.Context, in work.PassInput, st *settlement) (*answer, error) {
	select {
	case <-st.done:
		return st.ans, st.err
	case <-a.over: // the flight is left as it is, unless its child has ended already
		<-st.done
		return st.ans, st.err
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	switch {
	case temporal.IsCanceledError(cause), errors.Is(cause, activity.ErrActivityPaused), errors.Is(cause, activity.ErrActivityReset):
		a.end(ctx, in.Call, "ended by a person")
		<-st.done
		if st.ans != nil {
			return st.ans, nil // it had answered: the answer counts
		}
		if temporal.IsCanceledError(cause) {
			return nil, temporal.NewCanceledError("the call was ended")
		}
		kind := work.ErrForced
		if errors.Is(cause, activity.ErrActivityPaused) {
			kind = work.ErrPaused
		}
		return nil, temporal.NewNonRetryableApplicationError(cause.Error(), kind, cause)
	case errors.Is(cause, worker.ErrWorkerShutdown):
		a.end(ctx, in.Call, "the worker stops")
		<-st.done
		return st.ans, orStopping(st.ans)
	}
	return nil, cause
}

// end asks for the end of a call's agent.
func (a *Activities) end(ctx context.Context, call, cause string) {
	if _, err := a.flights.Kill(call, cause); err != nil && activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("the end of an agent cannot be asked for as it should be", "call", call, "error", err.Error())
	}
}

func orStopping(ans *answer) error {
	if ans != nil {
		return nil
	}
	return temporal.NewNonRetryableApplicationError("the worker stopped before the agent answered", work.ErrWorkerStopping, nil)
}

// heartbeat reports from entry until stop: where the call runs and how long the reply is so far.
func (a *Activities) heartbeat(ctx context.Context, in work.PassInput) (stop func()) {
	return beat(ctx, in.HeartbeatMS, func() any {
		return work.Heartbeat{Host: a.cfg.Host, Call: in.Call, Bytes: a.bytes(in.Call)}
	})
}

// judged reads what came back. It gives the same for the same answer, whoever asks and however often; beside it stands what came too late meanwhile.
func (a *Activities) judged(ctx context.Context, s *store.Store, in work.PassInput, ans *answer, reused, joined bool) (work.PassResult, error) {
	res, err := a.judge(ctx, s, in, ans)
	boundAll(&res)
	res.Reused, res.Joined = reused || ans.Recovered, joined
	if ans.Source != "" { // it was paid for where it comes from
		res.Source, res.SourceUSD, res.Spend = ans.Source, res.Spend.USD, run.Spend{Model: res.Spend.Model}
	}
	if err == nil {
		res.Late, err = lateSince(ctx, s, in)
	}
	return res, err
}

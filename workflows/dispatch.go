package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// dispatch sends a call to a worker, and to another one if the worker is lost. The call id stays the same, so a running
// call is joined and a finished one is not paid for twice.
type dispatch struct {
	*call
	queue   string
	wait    time.Duration       // for a worker of the queue; 0: without limit
	claimed *contract.HostClaim // whose end the next delivery waits for
	lost    int                 // deliveries whose worker was lost
	away    int                 // deliveries to hosts without the store or the program
}

// maxLostDeliveries is the number of lost deliveries of one call after which the run pauses for an operator.
const maxLostDeliveries = 20

// run makes deliveries until one has a result. A nil result means that a pause ended the call.
func (dp *dispatch) run(calls, ctx workflow.Context) (*contract.PassResult, error) {
	dp.queue = dp.host.callQueue(dp.agent().Program)
	for first := true; ; first = false {
		turn := first && dp.unwritten && dp.takesTurn()
		if dp.unwritten && !turn {
			if err := dp.journal.flush(ctx); err != nil || dp.state().Status == run.Paused {
				return nil, err // the disk is full: make no call
			}
			dp.unwritten = false
		}
		res, err := dp.deliver(calls, ctx, turn)
		if err == nil && dp.unwritten {
			continue
		}
		dp.claimed = nil
		over := false
		if err != nil {
			res = nil
			over, err = dp.failed(calls, ctx, err)
		} else {
			res, over, err = dp.answered(ctx, res)
		}
		if over || err != nil {
			return res, err
		}
	}
}

// answered decides what follows a result: it is that of the call, or another host has it.
func (dp *dispatch) answered(ctx workflow.Context, res *contract.PassResult) (_ *contract.PassResult, over bool, _ error) {
	switch {
	case res.HandedOver != "": // the next worker of the host joins the running call
		dp.queue, dp.wait = dp.hostCalls(res.HandedOver), nextWorkerWait
		return nil, false, nil
	case res.ClaimedBy != nil:
		dp.claimed = res.ClaimedBy
		dp.queue, dp.wait = dp.hostCalls(dp.claimed.Host), untilExpiry(ctx, dp.claimed.Until)
		return nil, false, nil
	case res.Unrecorded:
		ask, err := permission{dp.call}.withoutRecord(ctx)
		return nil, ask, err
	}
	return res, true, nil
}

// failed decides what follows a delivery without a result. over: the call ends without one.
func (dp *dispatch) failed(calls, ctx workflow.Context, err error) (over bool, _ error) {
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	if done, err := dp.stopped(ctx, calls, err); done {
		return true, err
	}
	if next, most, ok := dp.reroute(err); ok {
		pausing := dp.inbox.pauses
		if err := dp.host.awaitRetry(calls, dp.away, dp.title()+": "+errorMessage(err), pausing); ctx.Err() != nil ||
			pausing() && calls.Err() == nil {
			return true, err // no call is in progress that a pause would wait for
		}
		dp.queue, dp.wait, dp.away = next, most, dp.away+1
		return false, nil
	}
	dp.queue, dp.wait = dp.host.callQueue(dp.agent().Program), 0
	if timedOutInQueue(err) {
		return false, nil
	}
	dp.lost++
	if _, notes := costOf(err); len(notes) > 0 {
		dp.journalSuperseded(ctx, notes)
	}
	if dp.journalLost(ctx, err); dp.failure != nil {
		return true, nil
	}
	if dp.lost > 1 { // backoff for a host that keeps losing workers
		if whole, err := dp.sleepUnlessPaused(ctx, min(time.Second<<min(dp.lost-2, 5), 30*time.Second),
			"before the next delivery of "+dp.title()); err != nil || !whole {
			return true, err
		}
	}
	if host := lastHost(err); host != "" {
		dp.queue, dp.wait = dp.hostCalls(host), nextWorkerWait
	}
	return false, nil
}

// stopped handles the errors of a call that end its dispatch: it was cancelled, its activity was paused, a disk is
// full, or no worker can make it.
func (dp *dispatch) stopped(ctx, calls workflow.Context, err error) (done bool, _ error) {
	attempt := func(category run.Category, message string) error {
		spend, notes := costOf(err)
		dp.journalSuperseded(ctx, notes)
		ev := dp.attemptEvent(category, message)
		ev.Spend = spend
		dp.journal.emit(ctx, run.KindPassAttempt, dp.round.Stage, ev)
		return nil
	}
	switch {
	case calls.Err() != nil || isType(err, contract.ErrForced):
		return true, attempt(run.CategoryCancelled, "the call was cancelled by an operator")
	case isType(err, contract.ErrPaused): // an operator who pauses the activity wants the run to pause
		if err := attempt(run.CategoryCancelled, "its activity was paused"); err != nil {
			return true, err
		}
		dp.pause(ctx, run.UserRequested, "the activity of "+dp.title()+" was paused", "")
		return true, nil
	case isType(err, contract.ErrSetup):
		dp.pause(ctx, run.SetupFailed, errorMessage(err), "")
		return true, nil
	case isType(err, contract.ErrDiskFull):
		if err := attempt(run.CategoryFileIO, errorMessage(err)); err != nil {
			return true, err
		}
		dp.pause(ctx, run.DiskFull, errorMessage(err), "")
		return true, nil
	case isType(err, contract.ErrBadInput) || isType(err, tooLarge):
		return true, fmt.Errorf("%s: %w", dp.title(), err)
	}
	return false, nil
}

// nextWorkerWait is the time a delivery waits for a worker of the host that knows the call.
const nextWorkerWait = 30 * time.Second

func (dp *dispatch) hostCalls(host string) string {
	return contract.HostQueues(dp.in.Claim.TaskQueue, host).HostCalls
}

// untilExpiry returns the time until a claim expires, plus a margin for clock skew.
func untilExpiry(ctx workflow.Context, deadline string) time.Duration {
	at, err := time.Parse(time.RFC3339, deadline)
	if err != nil {
		return nextWorkerWait
	}
	return max(at.Sub(workflow.Now(ctx)), 0) + 10*time.Second
}

// journalLost journals a lost delivery and fails the pass after too many. A result that waits for the store is
// retried without limit; only its first deliveries are journaled.
func (dp *dispatch) journalLost(ctx workflow.Context, cause error) {
	n := dp.lost
	why, answered := lostMessage(cause), isType(cause, contract.ErrUnstored)
	if answered && n > maxLostDeliveries {
		return
	}
	dp.journal.emit(ctx, run.KindPassAttempt, dp.round.Stage, dp.attemptEvent(run.CategoryLost, why))
	dp.journal.soon()
	if n >= maxLostDeliveries && !answered {
		dp.failure = &contract.PassResult{Reading: run.Reading{Outcome: run.CategoryUnknown, Message: why}}
		dp.detail = fmt.Sprintf("%s was lost %d times: %s", dp.title(), n, why)
		dp.journal.emit(ctx, run.KindPassAttempt, dp.round.Stage, dp.attemptEvent(run.CategoryUnknown, dp.detail))
		return
	}
}

// options returns the options of one delivery. The activity id names the host that the delivery waits for.
func (dp *dispatch) options(ctx workflow.Context) workflow.Context {
	id := "pass-" + dp.Key
	if dp.Number == 0 {
		id = fmt.Sprintf("%s-%d", dp.Key, dp.at.Round)
	}
	if dp.member != "" {
		id += "-" + dp.member
	}
	if dp.claimed != nil {
		id += dp.claimed.Suffix()
	}
	return dp.host.callOptions(ctx, dp.queue, id, dp.inLane(dp.DescriptionOf(dp.member, dp.at.Round)), dp.timeout(), dp.wait)
}

// deliver makes one delivery of the call. A turn writes the pending events first. They stay pending meanwhile: another
// projection carries them again and learns that they are on disk. If the turn did not write them, the pass stays
// unwritten and no call was made.
func (dp *dispatch) deliver(calls, ctx workflow.Context, turn bool) (*contract.PassResult, error) {
	if !turn {
		var res contract.PassResult
		err := workflow.ExecuteActivity(dp.options(calls), contract.RunPass, dp.input()).Get(calls, &res)
		return &res, err
	}
	batch, _, err := dp.journal.batch()
	if err != nil {
		return nil, err
	}
	var res contract.TurnResult
	err = workflow.ExecuteActivity(dp.options(calls), contract.Turn,
		contract.TurnInput{Project: batch, Call: dp.input()}).Get(calls, &res)
	if err != nil || res.Pass == nil {
		return &contract.PassResult{}, err
	}
	dp.unwritten = false
	dp.journal.tookTurn(ctx, batch, res.Project)
	return res.Pass, nil
}

// reroute decides where a delivery goes that its host could not make for lack of the store or the program: once
// more to the host that may hold a result, then to any host. ok reports whether err is of that kind.
func (dp *dispatch) reroute(err error) (next string, wait time.Duration, ok bool) {
	if !isType(err, contract.ErrNoStore) && !isType(err, contract.ErrNoProgram) {
		return "", 0, false
	}
	any := dp.host.callQueue(dp.agent().Program)
	if host := hostWithoutStore(err); host != "" && dp.queue == any {
		return dp.hostCalls(host), nextWorkerWait, true
	}
	return any, 0, true
}

package workflows

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// waitForLimit waits until a limit resets, and its host lets the run make its call. A message ends the wait.
func (lp *loop) waitForLimit(ctx workflow.Context) error {
	if lp.state().Status != run.WaitingLimit {
		return nil
	}
	l := lp.state().Limited
	for until := l.Until; ; {
		at, err := time.Parse(run.TimeFormat, until)
		if err != nil {
			at = workflow.Now(ctx)
		}
		if _, err := lp.wait(ctx, wait{name: waitLimit, until: at, summary: limitSummary(l, until)}); err != nil {
			return err
		}
		if lp.inbox.leavesLimit() {
			return lp.endLimit(ctx, contract.AskResult{})
		}
		res, err := lp.askHost(ctx)
		if err != nil {
			return err
		}
		if res.Again == "" || lp.inbox.leavesLimit() {
			return lp.endLimit(ctx, res)
		}
		until = res.Again
	}
}

// askHost asks the host of the run whether a call that waits for a place, or for an account, may be made. Other calls
// find out when they are made. It returns at once if it is no longer of interest.
func (lp *loop) askHost(ctx workflow.Context) (res contract.AskResult, err error) {
	in, now := contract.AskInput{RunID: lp.in.Target.RunID}, run.Time(workflow.Now(ctx))
	for _, c := range lp.state().Limited.Calls() {
		if c.Until > now {
			continue
		}
		if c.AccountID == "" {
			return contract.AskResult{}, nil
		}
		in.Limits = append(in.Limits, c.Limit)
	}
	if len(in.Limits) == 0 || !lp.hostBound() {
		return contract.AskResult{}, nil
	}
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	f := workflow.ExecuteActivity(lp.host.directoryOptions(ctx, "ask whether the call may be made"), contract.Ask, in)
	if err := workflow.Await(ctx, func() bool { return f.IsReady() || lp.inbox.leavesLimit() }); err != nil || !f.IsReady() {
		return contract.AskResult{}, err
	}
	if f.Get(ctx, &res) != nil { // the call finds out
		return contract.AskResult{}, ctx.Err()
	}
	return res, nil
}

// limitSummary describes the timer of a wait.
func limitSummary(l *run.Limited, until string) string {
	if l.Kind == run.LimitAtOnce {
		return fmt.Sprintf("its turn; it asks again at %s: %s", until, l.AtOnce())
	}
	return fmt.Sprintf("until %s: %s of %s", until, l.Kind, l.Whose())
}

// endLimit ends the wait for a limit as requested, or because of what its host has answered.
func (lp *loop) endLimit(ctx workflow.Context, answer contract.AskResult) error {
	ev := run.RunUnlimited{Cause: cmp.Or(answer.Cause, run.LimitTimer)}
	switch {
	case lp.inbox.failed() != nil:
		return lp.inbox.failed()
	case lp.inbox.pauses() || lp.state().Status != run.WaitingLimit:
		return nil // the loop pauses, or a full disk did
	case lp.inbox.reverts() != nil:
		return lp.reverts.revert(ctx)
	}
	switch c := lp.inbox.take(); {
	case c.Resume:
		ev = run.RunUnlimited{Cause: run.LimitOperator, By: c.By, Note: c.Note}
	case ev.Cause == run.LimitTurn:
		ev.Account = answer.Limit.AccountID
	case ev.Cause != run.LimitTimer:
		ev.Account = answer.Limit.Account
	}
	lp.journal.emit(ctx, run.KindRunUnlimited, lp.state().Phase, ev)
	if err := lp.journal.flush(ctx); err != nil { // the directory is current before an operator's edits are read
		return err
	}
	return lp.checkout.adoptEdits(ctx)
}

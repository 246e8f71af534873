package workflows

import (
	"regexp"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// selfWakeAfter is how long after the reset a run makes its call if its account does not wake it.
const selfWakeAfter = 5 * time.Minute

// lease is the permission to make the first call after a limit of an account.
type lease struct {
	account string // id
	number  int64
}

// maxOpened bounds the accounts and turns that a run remembers for calls that may wait for them later.
const maxOpened = 1000

// accountID is the form of ids of accounts.
var accountID = regexp.MustCompile(`^[0-9a-f]{16}$`)

// listenToAccounts handles the messages of accounts. They authorize nothing: a run that is woken too early makes no
// call, because the file of the account on its host forbids it.
func (c *control) listenToAccounts(ctx workflow.Context) {
	ch := workflow.GetSignalChannelWithOptions(ctx, contract.AccountWake, workflow.SignalChannelOptions{
		Description: "An account can be used again. Its workflow sends this.",
	})
	workflow.GoNamed(ctx, "signal "+contract.AccountWake, func(ctx workflow.Context) {
		for {
			var raw converter.RawValue
			ch.Receive(ctx, &raw)
			if c.awaitOpen(ctx) != nil {
				return
			}
			var m contract.AccountMessage
			if p := raw.Payload(); len(p.GetData()) <= maxMessage &&
				converter.GetDefaultDataConverter().FromPayload(p, &m) == nil && accountID.MatchString(m.Account) {
				c.e.woken(ctx, m)
			}
		}
	})
}

// woken handles a message of an account. One of an earlier limit is ignored.
func (e *engine) woken(ctx workflow.Context, m contract.AccountMessage) {
	call, waits := e.j.state.Limited.Of(m.Account)
	switch {
	case waits && m.Number < call.Number:
		return
	case waits && e.j.state.Status == run.WaitingLimit && !e.control.Pause:
		e.control.Wake, e.control.Probe = call.Account, 0
		if call.Kind == run.LimitAtOnce {
			e.control.Wake = call.AccountID
		}
		if m.Probe {
			e.leased, e.control.Probe = &lease{m.Account, m.Number}, m.Number
		}
	case m.Probe:
		e.leave(ctx, lease{m.Account, m.Number})
	case len(e.accountsOpen) >= maxOpened: // its own timer wakes the call
	default:
		if e.accountsOpen == nil {
			e.accountsOpen = map[string]int64{}
		}
		e.accountsOpen[m.Account] = max(e.accountsOpen[m.Account], m.Number)
	}
}

// openedMeanwhile is a call that waits for a limit. If its account was opened while the step still ran, it waits no
// longer.
func (e *engine) openedMeanwhile(ctx workflow.Context, c run.LimitedCall) run.LimitedCall {
	if n, ok := e.accountsOpen[c.AccountID]; ok && c.Number > 0 && n >= c.Number {
		c.Until = run.Time(workflow.Now(ctx))
		if c.Kind == run.LimitAtOnce {
			delete(e.accountsOpen, c.AccountID) // it asks again now, under another number
		}
	}
	return c
}

// turnTaken forgets that it was the turn of a call that has asked again.
func (e *engine) turnTaken(c run.LimitedCall) {
	if c.Kind == run.LimitAtOnce && e.accountsOpen[c.AccountID] <= c.Number {
		delete(e.accountsOpen, c.AccountID)
	}
}

// probe returns the number of the limit after which a pass makes the first call, or that an operator asks for it; 0:
// neither. It is for the first pass of a step.
func (e *engine) probe(p *pass) int64 {
	l := e.leased
	if e.tryNow {
		e.tryNow = false
		return contract.ProbeNow
	}
	if l == nil || e.j.state.Limited.Call(p.member).AccountID != l.account {
		return 0
	}
	e.leased = nil
	return l.number
}

// leaveLease passes on a lease that the run does not use: it pauses, ends or is reverted.
func (e *engine) leaveLease(ctx workflow.Context) {
	if e.leased != nil {
		e.leave(ctx, *e.leased)
		e.leased = nil
	}
}

// leave reports to an account that the run makes no call. If the message is lost, the lease expires.
func (e *engine) leave(ctx workflow.Context, l lease) {
	workflow.SignalExternalWorkflow(ctx, contract.AccountPrefix+l.account, "", contract.AccountLeft,
		contract.AccountMessage{Account: l.account, Number: l.number, Run: e.in.Target.RunID})
}

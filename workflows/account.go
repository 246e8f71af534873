package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// startWithin is how long a run that was leased the probe may take to make its call, and the call to answer.
const startWithin = 2 * time.Minute

// AccountInput is the state of an account whose provider does not answer: empty at the first start.
type AccountInput struct {
	Number  int64    `json:"number,omitempty"` // of the limit
	Until   string   `json:"until,omitempty"`  // when the provider answers again
	Waiting []string `json:"waiting,omitempty"`
	// the run that makes the first call after the reset, and until when it may take to do so
	Leased      string `json:"leased,omitempty"`
	LeasedUntil string `json:"leased_until,omitempty"`
}

// maxWaiting bounds the runs that the workflow of an account wakes. Others wake five minutes after the reset.
const maxWaiting = 500

// Account wakes the runs that wait for an account: at the reset one of them makes a call, the probe. When the provider
// answers it, all others continue. The workflow completes when no run waits.
func Account(ctx workflow.Context, in AccountInput) error {
	a := &account{AccountInput: in, id: strings.TrimPrefix(workflow.GetInfo(ctx).WorkflowExecution.ID,
		contract.AccountPrefix)}
	for {
		a.receive(ctx)
		if a.opened {
			a.wakeAll(ctx)
		}
		if err := a.lease(ctx); err != nil {
			return err
		}
		if len(a.Waiting) == 0 && !a.pending(ctx) {
			return nil
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() && !a.pending(ctx) {
			return nextExecution(ctx, Account, a.AccountInput)
		}
		if err := a.wait(ctx); err != nil {
			return err
		}
	}
}

// account is the state of one execution.
type account struct {
	AccountInput
	id     string
	opened bool
}

// accountSignals are the signals of an account, in the order in which they are handled.
var accountSignals = []string{contract.AccountShut, contract.AccountStarted, contract.AccountLeft,
	contract.AccountOpened}

// receive handles all signals that have arrived.
func (a *account) receive(ctx workflow.Context) {
	for _, kind := range accountSignals {
		for {
			var m contract.AccountMessage
			if !workflow.GetSignalChannel(ctx, kind).ReceiveAsync(&m) {
				break
			}
			a.handle(ctx, kind, m)
		}
	}
}

// pending reports whether a signal has arrived that is not handled.
func (a *account) pending(ctx workflow.Context) bool {
	return slices.ContainsFunc(accountSignals, func(kind string) bool {
		return workflow.GetSignalChannel(ctx, kind).Len() > 0
	})
}

// handle applies a message. Messages of an earlier limit only register the run that waits.
func (a *account) handle(ctx workflow.Context, kind string, m contract.AccountMessage) {
	current := m.Number == a.Number
	switch kind {
	case contract.AccountShut:
		if _, err := time.Parse(run.TimeFormat, m.Until); err != nil {
			return
		}
		if m.Number > a.Number {
			a.Number, a.Until, a.Leased, a.opened = m.Number, m.Until, "", false
		} else if current {
			a.Until = max(a.Until, m.Until)
		}
		a.pass(m.Run, true)
	case contract.AccountStarted:
		if current && a.Leased == m.Run {
			a.LeasedUntil = run.Time(workflow.Now(ctx).Add(startWithin))
		}
	case contract.AccountLeft:
		if current {
			a.pass(m.Run, false)
		}
	case contract.AccountOpened:
		a.opened = a.opened || current
	}
}

// pass ends the lease of a run, which then waits after all others, or not at all.
func (a *account) pass(runID string, waits bool) {
	if a.Leased == runID {
		a.Leased = ""
	}
	a.Waiting = slices.DeleteFunc(a.Waiting, func(id string) bool { return id == runID })
	if waits && len(a.Waiting) < maxWaiting && runID != "" {
		a.Waiting = append(a.Waiting, runID)
	}
}

// lease leases the probe to the first run that waits, if the reset has passed and no run has it. A run that has ended
// is left out.
func (a *account) lease(ctx workflow.Context) error {
	for len(a.Waiting) > 0 && a.due(ctx) <= 0 {
		if a.Leased != "" {
			a.pass(a.Leased, true) // it made no call in time
		}
		next := a.Waiting[0]
		err := a.signal(ctx, next, true).Get(ctx, nil)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.pass(next, false)
			continue
		}
		a.Leased, a.LeasedUntil = next, run.Time(workflow.Now(ctx).Add(startWithin))
	}
	workflow.SetCurrentDetails(ctx, a.details())
	return nil
}

// due returns the time until the probe is leased, or leased to another run.
func (a *account) due(ctx workflow.Context) time.Duration {
	at := a.Until
	if a.Leased != "" {
		at = a.LeasedUntil
	}
	until, err := time.Parse(run.TimeFormat, at)
	if err != nil {
		return 0
	}
	return until.Sub(workflow.Now(ctx))
}

// wakeAll lets all runs that wait make their calls.
func (a *account) wakeAll(ctx workflow.Context) {
	all := make([]workflow.Future, len(a.Waiting))
	for i, id := range a.Waiting {
		all[i] = a.signal(ctx, id, false)
	}
	for i, f := range all {
		if err := f.Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Debug("a run that waited has ended", "run", a.Waiting[i], "error", err)
		}
	}
	a.Waiting, a.Leased, a.opened = nil, "", false
}

// signal sends one run the message that it may make its call.
func (a *account) signal(ctx workflow.Context, id string, probe bool) workflow.Future {
	return workflow.SignalExternalWorkflow(ctx, id, "", contract.AccountWake,
		contract.AccountMessage{Account: a.id, Number: a.Number, Run: id, Probe: probe})
}

// wait waits for a signal, or until the probe is due.
func (a *account) wait(ctx workflow.Context) error {
	if len(a.Waiting) == 0 {
		return nil
	}
	summary := fmt.Sprintf("until %s: %s", a.Until, cmp.Or(a.Leased, "the reset"))
	_, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout: max(a.due(ctx), time.Millisecond), TimerOptions: workflow.TimerOptions{Summary: summary},
	}, func() bool { return a.pending(ctx) })
	return err
}

// details describe the account in the Web UI.
func (a *account) details() string {
	text := fmt.Sprintf("The provider answers again at %s. Waiting: %s.", a.Until, run.Plural(len(a.Waiting), "run"))
	if a.Leased != "" {
		text += fmt.Sprintf(" Run `%s` makes the first call.", a.Leased)
	}
	return text
}

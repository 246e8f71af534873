package activities

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/accounts"
	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

// shutError is the error of a call whose account is shut. Nothing was claimed.
type shutError struct {
	accounts.Shut
	probing bool // the reset has passed, and another call is the first one
}

func (e *shutError) Error() string {
	if e.probing {
		return fmt.Sprintf("account %s: another call is the first one after the reset at %s", e.Name, e.Until)
	}
	return fmt.Sprintf("account %s is shut until %s", e.Name, e.Until)
}

// askAccount reads whether the account of a call is shut on this host. It is before anything of the call is written.
func (a *Activities) askAccount(ctx context.Context, st *runningCall, in contract.PassInput) error {
	if a.accounts.Dir == "" || st.command {
		return nil
	}
	now := a.cfg.Now()
	shut, probe, err := a.accounts.Ask(ctx, st.paid.Account.ID,
		accounts.Caller{Run: in.RunID, Call: in.Call, Number: in.Probe}, now)
	if err != nil {
		return err
	}
	if shut != nil {
		return &shutError{Shut: *shut, probing: shut.Until <= run.Time(now)}
	}
	st.probe = probe
	return nil
}

// waits is the result of a call whose account is closed: the run waits, and its account wakes it.
func (a *Activities) waits(ctx context.Context, in contract.PassInput, shut *shutError) contract.PassResult {
	return contract.PassResult{
		Outcome: run.CategoryRateLimit, Message: shut.Error(), Uncalled: true, Limit: a.announce(ctx, in, shut.Shut),
	}
}

// announce sends an account the message that a run waits for it, and returns the limit of the run. Without the message
// the run wakes at its own time.
func (a *Activities) announce(ctx context.Context, in contract.PassInput, shut accounts.Shut) *run.Limit {
	limit := &run.Limit{Kind: shut.Kind, Reset: shut.Until, Account: shut.Name}
	if a.send(ctx, in, contract.AccountShut, shut) {
		limit.AccountID, limit.Number = shut.ID, shut.Number
	}
	return limit
}

// send sends a message to the workflow of an account, which it starts if there is none.
func (a *Activities) send(ctx context.Context, in contract.PassInput, kind string, shut accounts.Shut) bool {
	if a.cfg.Client == nil {
		return false
	}
	const most = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	m := contract.AccountMessage{Account: shut.ID, Number: shut.Number, Run: in.RunID, Until: shut.Until}
	var err error
	if kind == contract.AccountShut {
		_, err = a.cfg.Client.SignalWithStartWorkflow(ctx, contract.AccountPrefix+shut.ID, kind, m,
			client.StartWorkflowOptions{TaskQueue: a.cfg.WorkflowQueue(in.Store),
				StaticSummary: "account " + shut.Name}, contract.AccountWorkflow, struct{}{})
	} else {
		err = a.cfg.Client.SignalWorkflow(ctx, contract.AccountPrefix+shut.ID, "", kind, m)
	}
	if err != nil && activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("send a message to an account; its runs wake later", "account", shut.ID,
			"message", kind, "error", err.Error())
	}
	return err == nil
}

// meetLimit records that an answer is the limit of its account. Answers that are found later count only before the
// reset.
func (a *Activities) meetLimit(ctx context.Context, s *store.Store, in contract.PassInput, ans *calls.Answer,
	acc accounts.Account, res *contract.PassResult) error {
	met := ans.Exit.Started.Add(ans.Exit.Duration)
	until, err := time.Parse(run.TimeFormat, res.Limit.Reset)
	if err != nil {
		until = time.Time{}
	}
	now := a.cfg.Now()
	if !until.IsZero() && !now.Before(until) || until.IsZero() && now.Sub(met) > accounts.SelfAfter {
		return nil
	}
	plan, err := a.plan(ctx, s, in.At.Plan)
	if err != nil {
		return err
	}
	_, _, step, role, err := find(plan, in.At)
	if err != nil {
		return err
	}
	limits := plan.RoleLimits(step, role.Name)
	shut, err := a.accounts.Close(ctx, acc, accounts.Limit{
		Kind: res.Limit.Kind, Until: until, After: limits.LimitWait(false, 1, 1, rand.Float64(), 1), Call: in.Call,
		Wait: func(count int) time.Duration { return limits.LimitWait(false, count, 0, 0, 1) },
	}, now)
	if err != nil {
		return err
	}
	res.Limit = a.announce(ctx, in, shut)
	return nil
}

// settleAccount records what an answer shows about its account.
func (a *Activities) settleAccount(ctx context.Context, s *store.Store, in contract.PassInput, ans *calls.Answer,
	res *contract.PassResult) error {
	if a.accounts.Dir == "" || ans.Source != "" {
		return nil
	}
	claim, err := calls.Ledger{Store: s, Call: in.Call}.ReadClaim(ctx, ans.Delivery)
	if errors.Is(err, store.ErrMissing) || err == nil && claim.Account == "" {
		return nil // an earlier release made the call, or it is a command
	}
	if err != nil {
		return err
	}
	acc := accounts.Account{ID: claim.Account, Name: claim.AccountName}
	if res.Limit != nil {
		res.Limit.Account = acc.Name
		if res.Limit.Kind == run.LimitPlan {
			return a.meetLimit(ctx, s, in, ans, acc, res)
		}
	}
	a.probed(ctx, in, acc.ID, true)
	return nil
}

// releaseProbe passes on the probe of a call that ended without an answer.
func (a *Activities) releaseProbe(ctx context.Context, in contract.PassInput) {
	if a.accounts.Dir == "" || a.isRunning(in.Call) {
		return
	}
	for _, id := range a.accounts.Probes(in.Call) {
		a.probed(ctx, in, id, false)
	}
}

// probed ends the probe of a call: the provider answered it, or it was not answered.
func (a *Activities) probed(ctx context.Context, in contract.PassInput, id string, answered bool) {
	ctx = context.WithoutCancel(ctx)
	end, kind := a.accounts.Release, contract.AccountLeft
	if answered {
		end, kind = a.accounts.Opened, contract.AccountOpened
	}
	shut, err := end(ctx, id, in.Call)
	if err == nil && shut != nil {
		a.send(ctx, in, kind, *shut)
	}
	if err != nil && activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("record what became of the first call after a limit; the lease expires", "account", id,
			"error", err.Error())
	}
}

// beginProbe reports that the first call after a limit has begun, and watches it.
func (a *Activities) beginProbe(ctx context.Context, in contract.PassInput, st *runningCall) {
	if !st.probe {
		return
	}
	if shut, err := a.accounts.Read(st.paid.Account.ID); err == nil && shut != nil {
		a.send(ctx, in, contract.AccountStarted, *shut)
	}
	a.watchProbe(ctx, in, st)
}

// watchProbe opens the account of the first call after a limit when its provider answers, or if the call has printed
// nothing for a time.
func (a *Activities) watchProbe(ctx context.Context, in contract.PassInput, st *runningCall) {
	const every = 100 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	silent := time.NewTimer(accounts.AnswerWithin)
	defer silent.Stop()
	for {
		select {
		case <-st.done:
			return // the result of the activity decides
		case <-silent.C:
			a.probed(ctx, in, st.paid.Account.ID, true)
			return
		case <-tick.C:
			if providerAnswers(st) {
				a.probed(ctx, in, st.paid.Account.ID, true)
				return
			}
		}
	}
}

// providerAnswers reports whether a running agent shows that its provider answers: with a frame of a model.
func providerAnswers(st *runningCall) bool {
	const most = 1 << 20
	f, err := os.Open(filepath.Join(st.dir, calls.StdoutFile))
	if err != nil {
		return false
	}
	data := make([]byte, most)
	n, err := f.Read(data)
	if f.Close() != nil || err != nil || n == 0 {
		return false
	}
	ad, ok := adapter.Find(st.kind)
	if !ok || !ad.Stream || ad.New == nil {
		return false
	}
	for _, frame := range ad.New().Parse(data[:n]) {
		switch frame.Kind {
		case adapter.KindTool, adapter.KindUsage:
			return true
		case adapter.KindText:
			return ad.Ends // of text output, the words may be an error
		case adapter.KindSession, adapter.KindLimit, adapter.KindWarning, adapter.KindResult:
		}
	}
	return false
}

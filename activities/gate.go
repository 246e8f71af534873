package activities

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/agent/gate"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/secrets"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// newGate returns the gate of this host; nil: it has no state directory.
func (a *Activities) newGate(d disk.Disk) *gate.Gate {
	if a.cfg.StateDir == "" {
		return nil
	}
	return gate.Open(a.cfg.StateDir, a.cfg.Host, gate.Options{
		Disk: d, Now: a.cfg.Now, Worker: a.worker, PerDay: gate.Budget(a.cfg.PerDay), AtOnce: a.cfg.AtOnce,
		Open: a.maskedStore, Answers: providerAnswers, Stores: func() (masked []string) {
			for _, url := range a.cfg.KnownStores() {
				masked = append(masked, config.Masked(url))
			}
			return masked
		},
	})
}

// maskedStore opens a store by its URL without secrets.
func (a *Activities) maskedStore(ctx context.Context, masked string) (*store.Store, error) {
	for _, url := range a.cfg.KnownStores() {
		if config.Masked(url) == masked {
			return a.store(ctx, url)
		}
	}
	a.mu.Lock()
	for url, s := range a.stores {
		if config.Masked(url) == masked {
			a.mu.Unlock()
			return s, nil
		}
	}
	a.mu.Unlock()
	return a.store(ctx, masked)
}

// refusedError is the error of a call that may not be made now. Nothing was claimed.
type refusedError struct{ gate.Refusal }

func (e *refusedError) Error() string { return e.Text }

// result has the run wait.
func (e *refusedError) result() contract.PassResult {
	outcome := run.CategoryRateLimit
	if e.Limit.Kind == run.LimitBudgetDay {
		outcome = run.CategoryBudgetExceeded
	}
	return contract.PassResult{Reading: run.Reading{Outcome: outcome, Message: e.Text}, Uncalled: true, Limit: &e.Limit}
}

// admit reserves the next delivery of a call at the gate, which its supervisor then holds.
func (a *Activities) admit(ctx context.Context, st *runningCall, in contract.PassInput,
	cmd agent.Command, holder process.Identity) error {
	if a.gate == nil || st.command() {
		return nil
	}
	key, err := secrets.StoreKey(ctx, st.l.Store)
	if err != nil {
		return err
	}
	ag := st.agent
	ag.Reply = st.kind
	st.paid = gate.Call{
		ID: in.Call, Delivery: st.number, Run: in.RunID, Pipeline: st.plan.Pipeline, Role: st.role.Name,
		Account: gate.AccountOf(key, ag, cmd.Environ()), Store: config.Masked(in.Store), Worker: a.worker, Holder: holder,
	}
	no, err := a.gate.Acquire(ctx, gate.Need{
		Call: st.paid, Most: gate.Budget{USD: st.plan.Budget.PerPass.USD, Tokens: st.plan.Budget.PerPass.Tokens},
		AtOnce: st.plan.AtOnce, Now: in.Now, Retry: st.limits.Complete().AfterReset.Max, Dir: st.dir,
		Reply: st.kind,
	})
	if no != nil {
		return &refusedError{*no}
	}
	return err
}

// waitForFirst waits before it is checked again whether the first call of a role has ended.
func (a *Activities) waitForFirst(ctx context.Context) error {
	const every = 2 * time.Second // each try starts a supervisor
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-a.handover:
		return errHandedOver
	case <-time.After(every):
		return nil
	}
}

// release releases a delivery that could not be claimed, and returns the cause. One that another worker has claimed
// stays reserved.
func (a *Activities) release(ctx context.Context, st *runningCall, cause error) error {
	if a.gate == nil || st.command() || errors.Is(cause, calls.ErrTaken) {
		return cause
	}
	return errors.Join(cause, a.gate.Release(context.WithoutCancel(ctx), st.paid))
}

// settleCosts records what the deliveries of a call have cost. If it fails, the next call of this host does it.
func (a *Activities) settleCosts(ctx context.Context, in contract.PassInput) {
	if a.gate == nil {
		return
	}
	const most = 10 * time.Second
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	s, err := a.store(brief, in.Store)
	if err == nil {
		err = a.gate.Settle(brief, s, config.Masked(in.Store), in.Call)
	}
	if err != nil && activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("record the cost of a call; the next call of this host does it", "call", in.Call,
			"error", err.Error())
	}
}

// settleAccount records what an answer shows about its account.
func (a *Activities) settleAccount(ctx context.Context, s *store.Store, in contract.PassInput, ans *calls.Answer,
	res *contract.PassResult) error {
	if a.gate == nil || ans.Source != "" {
		return nil
	}
	claim, err := calls.Ledger{Store: s, Call: in.Call}.ReadClaim(ctx, ans.Delivery)
	if errors.Is(err, store.ErrMissing) || err == nil && claim.Account == "" {
		return nil // it is a command
	}
	if err != nil {
		return err
	}
	acc := gate.Account{ID: claim.Account, Name: claim.AccountName}
	if full := ans.Read.Full; res.Limit == nil && a.cfg.Now().Before(full) {
		_, err = a.gate.Close(ctx, acc, gate.Limit{Kind: run.LimitPlan, Until: full, Call: in.Call})
		return err
	}
	if res.Limit == nil {
		return a.gate.Opened(ctx, acc.ID, in.Call)
	}
	if res.Limit.Account = acc.Name; res.Limit.Kind != run.LimitPlan {
		return a.gate.Opened(ctx, acc.ID, in.Call)
	}
	return a.meetLimit(ctx, s, in, ans, acc, res)
}

// meetLimit shuts the account of a call that met its limit. An answer that is found later counts only before the reset.
func (a *Activities) meetLimit(ctx context.Context, s *store.Store, in contract.PassInput, ans *calls.Answer,
	acc gate.Account, res *contract.PassResult) error {
	const counts = 5 * time.Minute // if the reset is unknown
	until, err := time.Parse(run.TimeFormat, res.Limit.Reset)
	if err != nil {
		until = time.Time{}
	}
	now := a.cfg.Now()
	if met := ans.Exit.Started.Add(ans.Exit.Duration); !until.IsZero() && !now.Before(until) ||
		until.IsZero() && now.Sub(met) > counts {
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
	shut, err := a.gate.Close(ctx, acc, gate.Limit{Kind: res.Limit.Kind, Until: until, Call: in.Call,
		Wait: func(count int) time.Duration { return limits.LimitWait(false, count, 0, 0, 1) }})
	res.Limit = &run.Limit{Kind: shut.Kind, Reset: shut.Until, Account: shut.Name, AccountID: shut.ID}
	return err
}

// Ask returns when calls that wait for limits ask again, or why one of them may be made now.
func (a *Activities) Ask(ctx context.Context, in contract.AskInput) (res contract.AskResult, err error) {
	for _, l := range in.Limits {
		if a.gate == nil {
			return contract.AskResult{Cause: run.LimitTimer, Limit: l}, nil
		}
		at, cause, err := a.gate.Ask(ctx, l)
		if err != nil {
			return res, err
		}
		if at.IsZero() {
			return contract.AskResult{Cause: cause, Limit: l}, nil
		}
		if again := run.Time(at); res.Again == "" || again < res.Again {
			res.Again = again
		}
	}
	return res, nil
}

// providerAnswers reports whether what an agent has printed in its scratch directory shows that its provider answers:
// a frame of a model.
func providerAnswers(dir, reply string) bool {
	const most = 1 << 20
	f, err := os.Open(filepath.Join(dir, calls.StdoutFile))
	if err != nil {
		return false
	}
	data := make([]byte, most)
	n, err := f.Read(data)
	if f.Close() != nil || err != nil || n == 0 {
		return false
	}
	ad, ok := adapter.Find(reply)
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

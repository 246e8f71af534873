package activities

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/accounts"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/costs"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/secrets"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// newCosts returns the ledger of this host; nil: it has no state directory.
func (a *Activities) newCosts(disk disk.Disk) *costs.Ledger {
	if a.cfg.StateDir == "" {
		return nil
	}
	return costs.Open(a.cfg.StateDir, a.cfg.Host, costs.Options{Disk: disk, Now: a.cfg.Now, Worker: a.worker,
		Open: func(ctx context.Context, url string) (*store.Store, error) {
			if strings.Contains(url, config.Mask) {
				return nil, errors.New("its URL has a secret, which the ledger does not have")
			}
			return a.store(ctx, url)
		}})
}

// admit decides whether the next delivery of a call may be claimed: its account is not shut, it is its turn, and the
// budget of the day covers it. It is then reserved in the ledger of this host.
func (a *Activities) admit(ctx context.Context, st *runningCall, in contract.PassInput, plan *pipeline.Plan,
	role pipeline.Role, ag pipeline.Agent, cmd agent.Command) error {
	if a.costs == nil || st.command {
		return nil
	}
	key, err := secrets.StoreKey(ctx, st.l.Store)
	if err != nil {
		return err
	}
	named := ag
	named.Reply = st.kind
	st.paid = costs.Call{
		ID: in.Call, Delivery: st.number, Run: in.RunID, Pipeline: plan.Pipeline, Role: role.Name,
		Account: accounts.Of(key, named, cmd.Environ()), Store: costs.MaskedURL(in.Store), Worker: a.worker,
	}
	if err := a.askAccount(ctx, st, in); err != nil {
		return err
	}
	full, short, err := a.costs.Reserve(ctx, st.paid, costs.Terms{
		PerDay:  costs.Budget(a.cfg.PerDay),
		PerCall: costs.Budget{USD: plan.Budget.PerPass.USD, Tokens: plan.Budget.PerPass.Tokens},
		AtOnce:  a.atOnce(st.paid.Name, plan.AtOnce), First: in.Probe == contract.ProbeNow, Server: a.cfg.Server,
	})
	switch {
	case full != nil:
		err = newTurnError(st.paid, *full)
	case short != nil:
		err = &shortError{*short}
	}
	if err != nil && st.probe {
		a.probed(ctx, in, st.paid.Account.ID, false)
	}
	return err
}

// waitForFirst waits before it is checked again whether the first call of a role has settled.
func (a *Activities) waitForFirst(ctx context.Context) error {
	const every = 200 * time.Millisecond
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-a.handover:
		return errHandedOver
	case <-time.After(every):
		return nil
	}
}

// shortError is the error of a call that the budget of the day does not cover. Nothing was claimed.
type shortError struct{ costs.Short }

func (e *shortError) Error() string { return e.Text() }

// result has the run wait for the next day. No call was made.
func (e *shortError) result() contract.PassResult {
	return contract.PassResult{
		Outcome: run.CategoryBudgetExceeded, Message: e.Text(), Uncalled: true,
		Limit: &run.Limit{Kind: run.LimitBudgetDay, Reset: run.Time(e.Day.Until)},
	}
}

// unreserve releases a delivery that could not be claimed, and returns the cause.
func (a *Activities) unreserve(ctx context.Context, st *runningCall, cause error) error {
	if a.costs == nil || st.command {
		return cause
	}
	mine := st.number
	if errors.Is(cause, calls.ErrTaken) {
		mine = 0
	}
	return errors.Join(cause, a.costs.Settle(context.WithoutCancel(ctx), st.l.Store, st.l.Call, mine))
}

// settleCosts records what the deliveries of a call have cost. If it fails, the next call of this host does it.
func (a *Activities) settleCosts(ctx context.Context, in contract.PassInput) {
	if a.costs == nil {
		return
	}
	const most = 10 * time.Second
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	s, err := a.store(brief, in.Store)
	if err == nil {
		err = a.costs.Settle(brief, s, in.Call, 0)
	}
	if err != nil && activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("record the cost of a call; the next call of this host does it", "call", in.Call,
			"error", err.Error())
	}
}

package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/costs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

// offersEvery is how often a worker looks for calls whose turn it is, also if no call ends.
const offersEvery = 30 * time.Second

// turnError is the error of a call that waits for its turn. Nothing was claimed.
type turnError struct {
	limit run.Limit
	full  costs.Full
}

func (e *turnError) Error() string {
	return fmt.Sprintf("the call waits for its turn, as number %d of %d: %s", e.full.Place, e.full.Of, e.limit.AtOnce())
}

// result has the run wait. When it is the turn of the call, a worker wakes the run.
func (e *turnError) result() contract.PassResult {
	return contract.PassResult{Outcome: run.CategoryRateLimit, Message: e.Error(), Uncalled: true, Limit: &e.limit}
}

// newTurnError is the error of a call that does not fit.
func newTurnError(c costs.Call, full costs.Full) *turnError {
	limit := run.Limit{Kind: run.LimitAtOnce, Bound: full.Bound, Most: full.Most, AccountID: turnID(c.ID),
		Number: full.Number}
	if full.Bound == run.AtOnceAccount {
		limit.Account = c.Name
	}
	return &turnError{limit, full}
}

// turnID identifies a call in the messages about its turn.
func turnID(call string) string {
	const size = 16
	return string(store.DigestOf([]byte(call)))[:size]
}

// atOnce returns how many calls may run beside a call.
func (a *Activities) atOnce(account string, ofPipeline int) costs.AtOnce {
	return costs.AtOnce{Host: a.cfg.AtOnce.Host, Account: a.cfg.AtOnce.Of(account), Pipeline: ofPipeline}
}

// callEnded has the worker look for calls whose turn it is.
func (a *Activities) callEnded() {
	select {
	case a.ended <- struct{}{}:
	default: // it will look anyway
	}
}

// KeepTurns wakes the runs of waiting calls when it is their turn, until ctx ends.
func (a *Activities) KeepTurns(ctx context.Context) {
	tick := time.NewTicker(offersEvery)
	defer tick.Stop()
	for {
		if err := a.OfferTurns(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("wake the runs whose calls are next; they make their calls later", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.ended:
		}
	}
}

// OfferTurns wakes the runs of the waiting calls whose turn it is. A run that makes no call now leaves the queue, and
// the next one has its turn.
func (a *Activities) OfferTurns(ctx context.Context) error {
	if a.costs == nil || a.cfg.Client == nil {
		return nil
	}
	for {
		offered, err := a.costs.Next(ctx, a.cfg.Server, func(w costs.Waiting) costs.AtOnce {
			return a.atOnce(w.Name, w.AtOnce.Pipeline)
		})
		if err != nil {
			return err
		}
		left := false
		for _, w := range offered {
			takes, err := a.offer(ctx, w)
			if err == nil && !takes {
				left, err = true, a.costs.Leave(ctx, w.Run, w.Number)
			}
			if err != nil {
				return fmt.Errorf("run %s: %w", w.Run, err)
			}
		}
		if !left {
			return nil
		}
	}
}

// leaveQueue takes the waiting calls of a run out of the queue when it pauses or ends; since is a time before that. If
// that fails, they leave when it is their turn.
func (a *Activities) leaveQueue(ctx context.Context, in contract.ProjectInput, since time.Time) {
	stops := func(line string) bool {
		return strings.Contains(line, `"kind":"`+string(run.KindRunPaused)+`"`) ||
			strings.Contains(line, `"kind":"`+string(run.KindRunEnd)+`"`)
	}
	if a.costs == nil || !slices.ContainsFunc(in.Lines, stops) {
		return
	}
	if err := a.costs.Leave(ctx, in.RunID, since.UnixMilli()); err != nil {
		activity.GetLogger(ctx).Warn("take the calls of a run out of the queue; they leave when it is their turn", "run",
			in.RunID, "error", err)
		return
	}
	a.callEnded() // a place may have been offered to it
}

// offer wakes the run of a call, unless the run is paused or has ended.
func (a *Activities) offer(ctx context.Context, w costs.Waiting) (takes bool, err error) {
	const most = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var s run.State
	if v, err := a.cfg.Client.QueryWorkflow(ctx, w.Run, "", contract.StatusQuery); err == nil && v.Get(&s) == nil &&
		(s.Status == run.Paused || s.Status.Closed()) {
		return false, nil
	}
	err = a.cfg.Client.SignalWorkflow(ctx, w.Run, "", contract.AccountWake, contract.AccountMessage{
		Account: turnID(w.Call), Number: w.Number, Run: w.Run})
	if gone := (*serviceerror.NotFound)(nil); errors.As(err, &gone) {
		return false, nil
	}
	return err == nil, err
}

package activities

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// findExisting looks for the answer of a call that a worker of this host has claimed. It waits for another live worker
// until its child ends. If that worker is gone, start joins the live supervisor; the output of a finished child is
// an answer; the rest of a lost one is ended. All results are nil if there is nothing to take over.
func (a *Activities) findExisting(ctx context.Context, l calls.Ledger,
	in contract.PassInput) (ans *calls.Answer, deliveries int, start startFunc, err error) {
	claims, err := l.Claims(ctx)
	if err != nil {
		return nil, 0, nil, err
	}
	if ans, err = l.Result(ctx); ans != nil || err != nil {
		return ans, len(claims), nil, err // it arrived meanwhile
	}
	var elsewhere error
	for i, c := range claims {
		if end, err := l.ReadEnd(ctx, i+1); err != nil {
			return nil, 0, nil, err
		} else if end != nil && (end.Session != nil || end.Refused) {
			continue // its directory may be that of a later delivery
		}
		if c.Host != a.cfg.Host {
			holds, err := a.claimHolds(ctx, l, i+1, c)
			switch {
			case err == nil && holds:
				elsewhere = &claimedError{contract.HostClaim{Host: c.Host, Until: c.Deadline}}
			case err == nil:
				err = a.endExpired(ctx, l, in, i+1, c)
			}
			if err != nil {
				return nil, 0, nil, err
			}
			continue
		}
		if ans, start, err = a.resolveClaim(ctx, l, in, i+1, c); ans != nil || start != nil || err != nil {
			return ans, len(claims), start, err
		}
	}
	return nil, len(claims), nil, elsewhere
}

// claimedError is the error for a call that another host may be making: this host waits for the claim's
// deadline.
type claimedError struct{ contract.HostClaim }

func (e *claimedError) Error() string {
	return fmt.Sprintf("the call is claimed by host %s until %s", e.Host, e.Until)
}

// claimHolds reports whether another host's claim may still bring a result. Claims without a deadline (older releases)
// do not hold.
func (a *Activities) claimHolds(ctx context.Context, l calls.Ledger, number int, c calls.Claim) (bool, error) {
	until, err := time.Parse(time.RFC3339, c.Deadline)
	if err != nil || !a.cfg.Now().Before(until) {
		return false, nil
	}
	ended, err := l.Ended(ctx, number)
	return !ended, err
}

// endExpired counts a delivery of another host whose deadline has passed without a result.
func (a *Activities) endExpired(ctx context.Context, l calls.Ledger, in contract.PassInput, number int,
	c calls.Claim) error {
	p, err := a.place(ctx, l.Store, in.At)
	if err != nil || p.command() || c.Deadline == "" {
		return err
	}
	if ended, err := l.Ended(ctx, number); ended || err != nil {
		return err
	}
	return l.End(ctx, number, calls.End{Spend: &run.Spend{Known: run.CostUnknown}})
}

func (a *Activities) resolveClaim(ctx context.Context, l calls.Ledger, in contract.PassInput, number int,
	c calls.Claim) (*calls.Answer, startFunc, error) {
	dir := filepath.Join(c.Scratch, strconv.Itoa(number))
	owner := c.Worker
	if last, ok, err := calls.ReadIdentity(dir); err == nil && ok {
		owner = last // it joined the call of a dead worker
	}
	// this worker's child has ended, or was started just now by a delivery that is about to be joined
	mine := owner == a.worker
	if !mine && owner.Alive() {
		if ans, err := a.awaitOtherWorker(ctx, l, number, owner, c.Supervisor, dir); ans != nil || err != nil {
			return ans, nil, err
		}
	}
	if !mine {
		if begun, err := awaitStarted(ctx, dir, c.Supervisor); begun || err != nil {
			return nil, func(*os.File) (*runningCall, *agent.Child, error) {
				return a.joinSupervisor(ctx, l, in, number, dir, c.Supervisor)
			}, err
		}
		if err := calls.Reap(ctx, dir); err != nil {
			return nil, nil, err
		}
	}
	ans, err := a.recoverOutput(ctx, l, in, number, dir)
	if none := (*noAnswerError)(nil); errors.As(err, &none) {
		return nil, nil, a.reportOnce(ctx, l, number, dir, none)
	}
	if ans == nil && err == nil && !mine {
		return nil, nil, a.endLost(ctx, l, in, number, dir)
	}
	return ans, nil, err
}

// reportOnce returns the error of a delivery that was stopped without an answer, once: the journal must have it, as
// it may have cost money.
func (a *Activities) reportOnce(ctx context.Context, l calls.Ledger, number int, dir string,
	none *noAnswerError) error {
	reported, err := l.Ended(ctx, number)
	if err != nil {
		return err
	}
	err = a.endWithout(ctx, l, number, dir, none.end)
	if reported || none.again {
		return err
	}
	return errors.Join(none, err)
}

// endLost ends a delivery whose supervisor was lost. Its session is left for the next one. A delivery that had ended
// before, such as one whose workspace could not be set up, costs nothing more.
func (a *Activities) endLost(ctx context.Context, l calls.Ledger, in contract.PassInput, number int, dir string) error {
	if ended, err := l.Ended(ctx, number); err != nil {
		return err
	} else if ended {
		return a.endWithout(ctx, l, number, dir, calls.End{})
	}
	st, err := a.claimed(ctx, l, in, number, dir)
	if err != nil {
		return err
	}
	return a.endWithout(ctx, l, number, dir, a.lost(ctx, st).end)
}

// awaitStarted reports whether a live supervisor has started its agent. A supervisor without its worker ends.
func awaitStarted(ctx context.Context, dir string, id process.Identity) (bool, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for id.Alive() {
		if _, err := os.Stat(filepath.Join(dir, supervisor.RecordFile)); err == nil {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-tick.C:
		}
	}
	return false, nil
}

// joinSupervisor joins the call of a dead worker through its supervisor.
func (a *Activities) joinSupervisor(ctx context.Context, l calls.Ledger, in contract.PassInput, number int,
	dir string, id process.Identity) (*runningCall, *agent.Child, error) {
	if err := a.learnDeliverySecrets(dir); err != nil {
		return nil, nil, err
	}
	st, err := a.claimed(ctx, l, in, number, dir)
	if err := errors.Join(err, calls.WriteIdentity(dir, a.worker)); err != nil {
		return nil, nil, err
	}
	return st, agent.Join(dir, id), nil
}

// takeoverDelay is the time a worker has to store the output of an ended child. Then another worker of the host does
// it: the first may be frozen.
const takeoverDelay = 2 * time.Second

// awaitOtherWorker waits until another worker's delivery has an answer or has ended, or that worker is dead or ignores
// its ended child. Two workers may read the same output: the first answer counts.
func (a *Activities) awaitOtherWorker(ctx context.Context, l calls.Ledger, number int, other, by process.Identity,
	dir string) (*calls.Answer, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var late <-chan time.Time
	for {
		alive := other.Alive()
		ans, err := l.Result(ctx)
		if ans != nil || err != nil || !alive {
			return ans, err
		}
		if over, err := l.Ended(ctx, number); over || err != nil {
			return nil, err
		}
		if late == nil && (calls.Finished(dir) || by != (process.Identity{}) && !by.Alive()) {
			late = time.After(takeoverDelay)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-a.handover:
			return nil, errHandedOver
		case <-late:
			return l.Result(ctx)
		case <-tick.C:
		}
	}
}

// recoverOutput reads the output of a delivery that no activity waits for. Without an exit record only a complete
// envelope counts. Both results are nil if there is no answer.
func (a *Activities) recoverOutput(ctx context.Context, l calls.Ledger, in contract.PassInput, number int,
	dir string) (*calls.Answer, error) {
	if err := a.learnDeliverySecrets(dir); err != nil {
		return nil, err
	}
	st, err := a.claimed(ctx, l, in, number, dir)
	if err != nil {
		return nil, err
	}
	st.recovered = true
	exit, err := supervisor.ReadExit(dir)
	var spawn *supervisor.SpawnError
	switch {
	case errors.As(err, &spawn):
		return a.storeSpawnFailure(ctx, st, spawn.Err)
	case errors.Is(err, supervisor.ErrNoExit):
		out, err := calls.ReadOutputs(dir, int64(st.limits.Output))
		if err != nil || !agent.Complete(st.kind, out.Stdout) {
			return nil, err
		}
		exit = agent.Exit{Code: -1, Signal: "killed"}
		if fi, err := os.Stat(filepath.Join(dir, calls.StdoutFile)); err == nil {
			exit.Started = fi.ModTime()
		}
	case err != nil:
		return nil, err
	}
	return a.storeOutput(ctx, st, in, exit)
}

// tidyDeliveries accounts for finished deliveries of an answered call on this host. If the answer is theirs, only their
// folders are removed. Others were paid for too.
func (a *Activities) tidyDeliveries(ctx context.Context, l calls.Ledger, in contract.PassInput, ans *calls.Answer) {
	if a.isRunning(in.Call) {
		return
	}
	for _, dir := range calls.FinishedDeliveries(a.cfg.Scratch, in.Call) {
		number, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && (number != ans.Delivery || ans.Host != a.cfg.Host) {
			_, err = a.recoverOutput(ctx, l, in, number, dir)
		}
		if none := (*noAnswerError)(nil); err == nil || errors.As(err, &none) {
			err = calls.RemoveFolder(dir, ans.Session.WorkDir())
		}
		a.warn(ctx, "remove the scratch directory of an answered call", dir, err)
	}
}

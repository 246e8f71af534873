package activities

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/supervisor"
	"github.com/passbook-run/passbook/work"
)

// inherit looks for the answer of a call that a worker of this host has claimed. Another living worker is waited for, until its child has ended. Where
// that worker is gone, a living supervisor is joined: start does that. What a finished child left is an answer, also one that this worker could not store
// before; what is left of a lost one is ended. All nil:
// there is nothing to inherit.
func (a *Activities) inherit(ctx context.Context, l ledger, in work.PassInput) (ans *answer, deliveries int, start starter, err error) {
	claims, err := l.claims(ctx)
	if err != nil {
		return nil, 0, nil, err
	}
	if ans, err = l.result(ctx); ans != nil || err != nil {
		return ans, len(claims), nil, err // it came while we looked
	}
	var elsewhere error
	for i, c := range claims {
		if c.Host != a.cfg.Host {
			if holds, err := a.holds(ctx, l, i+1, c); err != nil {
				return nil, 0, nil, err
			} else if holds {
				elsewhere = &claimedElsewhere{work.Elsewhere{Host: c.Host, Until: c.Deadline}}
			}
			continue
		}
		if ans, start, err = a.inheritFrom(ctx, l, in, i+1, c); ans != nil || start != nil || err != nil {
			return ans, len(claims), start, err
		}
	}
	return nil, len(claims), nil, elsewhere
}

// claimedElsewhere says that another host may be making the call: it is not made here before that claim's deadline.
type claimedElsewhere struct{ work.Elsewhere }

func (e *claimedElsewhere) Error() string {
	return fmt.Sprintf("the call is claimed by host %s until %s", e.Host, e.Until)
}

// holds says whether the claim of another host may still bring a result. Claims of releases without deadlines do not hold.
func (a *Activities) holds(ctx context.Context, l ledger, number int, c claim) (bool, error) {
	until, err := time.Parse(time.RFC3339, c.Deadline)
	if err != nil || !a.cfg.Now().Before(until) {
		return false, nil
	}
	ended, err := l.ended(ctx, number)
	return !ended, err
}

func (a *Activities) inheritFrom(ctx context.Context, l ledger, in work.PassInput, number int, c claim) (*answer, starter, error) {
	dir := filepath.Join(c.Scratch, strconv.Itoa(number))
	owner := c.Worker
	if last, ok, err := readIdentity(dir, workerFile); err == nil && ok {
		owner = last // it has joined the call of a worker that was gone
	}
	mine := owner == a.cfg.Worker // a child of mine has ended, or was started this moment by a delivery that I am about to join
	if !mine && owner.Alive() {
		if ans, err := a.waitForOther(ctx, l, number, owner, c.Supervisor, dir); ans != nil || err != nil {
			return ans, nil, err
		}
	}
	if !mine {
		if begun, err := awaitBegun(ctx, dir, c.Supervisor); begun || err != nil {
			return nil, func() (*settlement, *agent.Child, error) { return a.adopt(ctx, l, in, number, dir, c.Supervisor) }, err
		}
		if err := reap(ctx, dir); err != nil {
			return nil, nil, err
		}
	}
	ans, err := a.leftBehind(ctx, l, in, number, dir)
	if none := (*unanswered)(nil); errors.As(err, &none) {
		return nil, nil, a.toldOnce(ctx, l, number, dir, err)
	}
	if ans == nil && err == nil && !mine {
		a.warn(ctx, "the scratch directory of a lost call cannot be removed", dir, clear(dir))
	}
	return ans, nil, err
}

// toldOnce gives the error of a delivery that was stopped without an answer, the first time: the journal has to have it, as it may have cost something.
func (a *Activities) toldOnce(ctx context.Context, l ledger, number int, dir string, cause error) error {
	told, err := l.ended(ctx, number)
	if err != nil {
		return err
	}
	a.warn(ctx, "the scratch directory of a stopped call cannot be removed", dir, clear(dir))
	if told {
		return nil
	}
	return errors.Join(cause, l.end(ctx, number))
}

// awaitBegun says whether a supervisor lives that has begun its call. One that waits for its worker ends with that.
func awaitBegun(ctx context.Context, dir string, id process.Identity) (bool, error) {
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

// adopt joins the call of a worker that is gone, by its supervisor.
func (a *Activities) adopt(ctx context.Context, l ledger, in work.PassInput, number int, dir string, id process.Identity) (*settlement, *agent.Child, error) {
	if err := a.learnLeft(dir); err != nil {
		return nil, nil, err
	}
	st := &settlement{done: make(chan struct{}), l: l, number: number, dir: dir}
	if err := errors.Join(a.placeFile(ctx, st, in), writeIdentity(dir, workerFile, a.cfg.Worker)); err != nil {
		return nil, nil, err
	}
	return st, agent.Join(dir, id), nil
}

// takeover is how long a worker has to store what its child left, once that has ended. Then another worker of the host does it: the first may be frozen.
const takeover = 2 * time.Second

// waitForOther waits until another worker's delivery has its result, or has ended without one, or that worker is gone, or it takes no care of a child
// that has ended. Two may read a finished child at once: the first answer counts.
func (a *Activities) waitForOther(ctx context.Context, l ledger, number int, other, by process.Identity, dir string) (*answer, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var late <-chan time.Time
	for {
		alive := other.Alive()
		ans, err := l.result(ctx)
		if ans != nil || err != nil || !alive {
			return ans, err
		}
		if over, err := l.ended(ctx, number); over || err != nil {
			return nil, err
		}
		if late == nil && (finished(dir) || by != (process.Identity{}) && !by.Alive()) {
			late = time.After(takeover)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-a.over:
			return nil, errHandedOver
		case <-late:
			return l.result(ctx)
		case <-tick.C:
		}
	}
}

// leftBehind reads what a delivery left that no activity waits for any more: with an exit record whatever it is, without one only a whole envelope. Both nil:
// nothing that could be an answer.
func (a *Activities) leftBehind(ctx context.Context, l ledger, in work.PassInput, number int, dir string) (*answer, error) {
	st := &settlement{l: l, number: number, dir: dir, recovered: true}
	if err := a.learnLeft(dir); err != nil {
		return nil, err
	}
	if err := a.placeFile(ctx, st, in); err != nil {
		return nil, err
	}
	exit, err := supervisor.ReadExit(dir)
	var spawn *supervisor.SpawnError
	switch {
	case errors.As(err, &spawn):
		return a.unstarted(ctx, st, spawn.Err)
	case errors.Is(err, supervisor.ErrNoExit):
		out, err := outputsOf(dir)
		if err != nil || !agent.Complete(st.kind, out.stdout) {
			return nil, err
		}
		exit = agent.Exit{Code: -1, Signal: "killed"}
		if fi, err := os.Stat(filepath.Join(dir, stdoutFile)); err == nil {
			exit.Started = fi.ModTime()
		}
	case err != nil:
		return nil, err
	}
	return a.collect(ctx, st, in, exit)
}

// finished reports whether the child of a delivery is gone, so that its answer can be read, whoever started it.
func finished(dir string) bool {
	_, err := supervisor.ReadExit(dir)
	var spawn *supervisor.SpawnError
	return err == nil || errors.As(err, &spawn)
}

// tidy accounts for finished deliveries on this host of a call that has its answer. Where that is theirs, only their folders are left: the store took it
// without saying so. Any other was paid for too.
func (a *Activities) tidy(ctx context.Context, l ledger, in work.PassInput, ans *answer) {
	if a.flying(in.Call) {
		return
	}
	for _, dir := range a.finishedHere(in.Call) {
		number, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && (number != ans.Delivery || ans.Host != a.cfg.Host) {
			_, err = a.leftBehind(ctx, l, in, number, dir)
		}
		if none := (*unanswered)(nil); err == nil || errors.As(err, &none) {
			err = clear(dir)
		}
		a.warn(ctx, "the scratch directory of an answered call cannot be removed", dir, err)
	}
}

// finishedHere are the scratch directories of a call's deliveries whose child has finished.
func (a *Activities) finishedHere(call string) []string {
	root := filepath.Join(a.cfg.Scratch, scratchName(call))
	deliveries, err := os.ReadDir(root)
	if err != nil {
		return nil // none was made here
	}
	var dirs []string
	for _, d := range deliveries {
		if dir := filepath.Join(root, d.Name()); finished(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

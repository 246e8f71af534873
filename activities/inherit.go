package activities

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/work"
)

// inherit looks for the answer of a call that a worker of this host has claimed. Another living one is waited for. Of a dead one the child is
// ended, if it still lives. Then what is left is read: that of a finished child is an answer, also one that this worker could not store before. nil:
// there is nothing to inherit.
func (a *Activities) inherit(ctx context.Context, l ledger, in work.PassInput) (ans *answer, deliveries int, joined bool, err error) {
	claims, err := l.claims(ctx)
	if err != nil {
		return nil, 0, false, err
	}
	if ans, err = l.result(ctx); ans != nil || err != nil {
		return ans, len(claims), true, err // it came while we looked
	}
	for i, c := range claims {
		if c.Host != a.cfg.Host {
			continue
		}
		mine, dir := c.Worker == a.cfg.Worker, filepath.Join(c.Scratch, strconv.Itoa(i+1))
		if !mine && c.Worker.Alive() {
			if ans, err = waitForOther(ctx, l, i+1, c.Worker, dir); ans != nil || err != nil {
				return ans, len(claims), true, err
			}
		}
		if !mine { // a child of mine has ended, or was started this moment by a delivery that I am about to join
			if err := reap(ctx, dir); err != nil {
				return nil, len(claims), false, err
			}
		}
		if ans, err = a.leftBehind(ctx, l, in, i+1, dir); ans != nil || err != nil {
			return ans, len(claims), false, err
		}
		if !mine {
			a.warn(ctx, "the scratch directory of a lost call cannot be removed", dir, a.forget(dir))
		}
	}
	return nil, len(claims), false, nil
}

// waitForOther waits until another worker's delivery has its result, or has ended without one, or its child is finished, or that worker is gone. Two may
// read a finished child at once: the first answer counts.
func waitForOther(ctx context.Context, l ledger, number int, other process.Identity, dir string) (*answer, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		alive := other.Alive()
		ans, err := l.result(ctx)
		if ans != nil || err != nil || !alive {
			return ans, err
		}
		if over, err := l.ended(ctx, number); over || err != nil || finished(dir) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// leftBehind reads what a delivery left that no activity waits for any more: with an exit record whatever it is, without one only a whole envelope. nil: it
// has no answer.
func (a *Activities) leftBehind(ctx context.Context, l ledger, in work.PassInput, number int, dir string) (*answer, error) {
	st := &settlement{l: l, number: number, dir: dir, recovered: true}
	exit, finished, err := a.exitOf(dir)
	if err != nil {
		return nil, err
	}
	if err := a.learnLeft(dir); err != nil {
		return nil, err
	}
	if err := a.placeFile(ctx, st, in); err != nil {
		return nil, err
	}
	if !finished {
		out, err := outputsOf(dir)
		if err != nil || !agent.Complete(st.kind, out.stdout) {
			return nil, err
		}
		exit = agent.Exit{Code: -1, Signal: "killed"}
		if fi, err := os.Stat(filepath.Join(dir, stdoutFile)); err == nil {
			exit.Started = fi.ModTime()
		}
	}
	return a.collect(ctx, st, in, exit)
}

// finished reports whether the child of a delivery is gone, so that its answer can be read, whoever started it.
func finished(dir string) bool {
	_, ok, err := agent.ReadExit(dir)
	return ok && err == nil
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
		if err == nil {
			err = a.forget(dir)
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

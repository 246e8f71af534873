package activities

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/work"
)

// inherit looks for the answer of a call that a worker of this host has claimed. Another living one is waited for. Of a dead one the child is
// ended, if it still lives. Then what is left is read: a whole envelope is an answer, also one that this worker could not store before. nil:
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
			if ans, err = waitForOther(ctx, l, i+1, c.Worker); ans != nil || err != nil {
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
			if err := clear(dir); err != nil {
				return nil, len(claims), false, err
			}
		}
	}
	return nil, len(claims), false, nil
}

// waitForOther waits until another worker's delivery has its result, or has ended without one, or that worker is gone.
func waitForOther(ctx context.Context, l ledger, number int, other process.Identity) (*answer, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		alive := other.Alive()
		ans, err := l.result(ctx)
		if ans != nil || err != nil || !alive {
			return ans, err
		}
		if over, err := l.ended(ctx, number); over || err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// leftBehind reads the output of a delivery that nobody waits for any more.
func (a *Activities) leftBehind(ctx context.Context, l ledger, in work.PassInput, number int, dir string) (*answer, error) {
	stdout, err := os.ReadFile(filepath.Join(dir, stdoutFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := a.learnLeft(dir); err != nil {
		return nil, err
	}
	st := &settlement{l: l, number: number, dir: dir}
	if err := a.placeFile(ctx, st, in); err != nil || !agent.Complete(st.kind, stdout) {
		return nil, err
	}
	exit := agent.Exit{Code: -1, Signal: "killed"}
	if fi, err := os.Stat(filepath.Join(dir, stdoutFile)); err == nil {
		exit.Started = fi.ModTime()
	}
	ans, err := a.answerFrom(ctx, st, in, exit, stdout)
	if err != nil {
		return nil, err
	}
	ans.Recovered = true
	if _, err := l.put(ctx, *ans); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	return l.result(ctx)
}

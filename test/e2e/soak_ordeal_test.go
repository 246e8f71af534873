package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/test/e2e/point"
	"github.com/passbook-run/passbook/test/histories"
)

// think makes each call of the site take its time.
func (s *site) think(calls map[string]time.Duration) error {
	var faults strings.Builder
	for at, d := range calls {
		fmt.Fprintf(&faults, "- {at: %q, do: slow, seconds: %g, attempt: all}\n", at, d.Seconds())
	}
	return s.spoil(faults.String())
}

// wait polls until a condition holds.
func wait(ctx context.Context, what string, holds func() (bool, error)) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}

// suffer executes a run whose workers are interrupted one after another. The last ones complete it.
func (s *soak) suffer(ctx context.Context, o ordeal) (*site, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*deadline) // the machine may be busy
	defer cancel()
	run, err := s.newSite(fmt.Sprintf("soak-%04d", o.k))
	if err != nil {
		return run, err
	}
	if err := errors.Join(run.think(o.think), run.start(ctx)); err != nil {
		return run, err
	}
	if err := run.suffer(ctx, o, s.builds); err != nil {
		return run, err
	}
	if o.forgetful { // a call that was repeated breaks other promises too
		return run, errors.Join(run.watch.over(), endSupervisors(filepath.Join(run.root, "state", "scratch")))
	}
	_, err = histories.ReplayRun(ctx, run.op.Client, run.runID, "", "")
	return run, errors.Join(run.invariants(s.want, s.stranger), err)
}

// suffer interrupts worker after worker, and has those that are left complete the run. Upgrades change between builds.
func (s *site) suffer(ctx context.Context, o ordeal, builds []string) (err error) {
	var crew []*exec.Cmd
	defer func() {
		for _, cmd := range crew {
			err = errors.Join(err, end(cmd))
		}
	}()
	build := 0
	hire := func() error {
		cmd, err := s.worker(ctx, builds[build%len(builds)], o.forgetful)
		if err != nil {
			return err
		}
		crew = append(crew, cmd)
		return wait(ctx, "the worker polls", func() (bool, error) {
			st, err := host.Read(s.op.Settings.StateDir)
			return err == nil && st.Worker != nil && st.Worker.Process.PID == cmd.Process.Pid, err
		})
	}
	if err := hire(); err != nil {
		return err
	}
	if o.second {
		if err := hire(); err != nil {
			return err
		}
	}
	for i, b := range o.blows {
		victim := crew[i%len(crew)]
		at, err := s.asked(ctx, b.calls)
		if err != nil {
			return err
		}
		if b.kind == upgraded { // the old one gets SIGTERM when the new one polls
			build++
			if err := hire(); err != nil {
				return err
			}
		}
		after(time.Duration(b.part * float64(o.think[at])))
		crew = slices.DeleteFunc(crew, func(cmd *exec.Cmd) bool { return cmd == victim })
		if err := s.strike(b.kind, victim, crew); err != nil {
			return err
		}
		if b.kind == upgraded {
			continue
		}
		if err := hire(); err != nil {
			return err
		}
	}
	return s.ended(ctx)
}

// asked waits until that number of calls has been started, and names the last of them.
func (s *site) asked(ctx context.Context, n int) (at string, err error) {
	err = wait(ctx, fmt.Sprintf("%d calls are started", n), func() (bool, error) {
		calls, err := readCalls(s.log)
		seen := map[string]bool{}
		for _, c := range calls {
			if seen[c.At] = true; len(seen) == n {
				at = c.At
				break
			}
		}
		return at != "", err
	})
	return at, err
}

// worker starts the real worker of a build, or one that never finds the result of a finished call.
func (s *site) worker(ctx context.Context, build string, forgetful bool) (*exec.Cmd, error) {
	if forgetful {
		return s.launch(ctx, []string{point.Plan{Forget: true}.Setting()}, filepath.Join(build, "victim"), "worker")
	}
	return s.launch(ctx, nil, filepath.Join(build, "worker"))
}

// strike interrupts a worker and records what it left. The others are suspended meanwhile: what they do is not what it
// left.
func (s *site) strike(kind string, victim *exec.Cmd, others []*exec.Cmd) (err error) {
	calls, err := readCalls(s.log)
	if err != nil {
		return err
	}
	running := inFlight(calls, victim.Process.Pid)
	if kind != killed {
		if err := dismiss(victim); err != nil {
			return err
		}
	}
	for _, cmd := range others {
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
	}
	if kind == killed {
		err = end(victim)
	}
	if err == nil {
		err = s.died(death{Point: point.Point{At: "a random moment, by " + kind}, Kind: kind, InFlight: running})
	}
	for _, cmd := range others {
		err = errors.Join(err, cmd.Process.Signal(syscall.SIGCONT))
	}
	return err
}

// dismiss asks a worker to stop, and waits until it has.
func dismiss(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	late := time.AfterFunc(deadline, func() { _ = cmd.Process.Kill() }) // then Wait returns an error
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("stop a worker: %w", err)
	}
	return nil
}

// inFlight reports whether a call of a worker runs that is not answered.
func inFlight(calls []callLine, worker int) bool {
	last := map[string]callLine{}
	for _, c := range calls {
		last[c.At] = c
	}
	for _, c := range last {
		if _, alive := agentOf(c); alive && c.Event == "start" && makerOf(c) == worker {
			return true
		}
	}
	return false
}

// makerOf is the number of the process that a call belongs to, by the delivery's own record; 0: there is none.
func makerOf(c callLine) int {
	var id process.Identity
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(c.Dir), "worker.json"))
	if err != nil || json.Unmarshal(raw, &id) != nil {
		return 0
	}
	return id.PID
}

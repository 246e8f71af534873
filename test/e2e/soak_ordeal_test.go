package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/layout"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/e2e/point"
	"github.com/passbook-run/passbook/test/histories"
)

// ordeal is what happens to one run.
type ordeal struct {
	k         int
	blows     []blow
	think     map[string]time.Duration // how long each call takes, by its name in the call log
	second    bool                     // two workers are at work, and chance says which one dies
	forgetful bool                     // the workers never find the result of a finished call
}

// blow is one interruption of a run's worker.
type blow struct {
	kind string // how
	// how many calls have been started by then; 0: when the run has done something that the last blow did not find
	calls int
	part  float64       // and then after this part of the time that the last of these calls takes
	life  time.Duration // or after so long
	aim   string        // and when this window opens; empty: wherever the run is
}

// blows are the kills of one run: what the workers are left alone is all together no longer than an undisturbed run
// needs.
func (o soak) blows(random *rand.Rand, took time.Duration) []blow {
	out := make([]blow, 1+random.Intn(o.kills))
	for i := range out {
		out[i] = blow{kind: killed, life: time.Duration(random.Int63n(int64(took) / int64(len(out))))}
	}
	for i := range out {
		out[i].aim = aim(random)
	}
	return out
}

// thinking is how long a call takes in a soak of turns, so that kills hit calls too.
const thinking = 60 * time.Millisecond

// slow makes every call of the site think.
func (s *site) slow(calls []string) error {
	think := map[string]time.Duration{}
	for _, at := range calls {
		think[at] = thinking
	}
	return s.think(think)
}

// think makes each call of the site take its time.
func (s *site) think(calls map[string]time.Duration) error {
	s.takes = calls
	var faults strings.Builder
	for at, d := range calls {
		fmt.Fprintf(&faults, "- {at: %q, do: slow, seconds: %g, attempt: all}\n", at, d.Seconds())
	}
	return s.spoil(faults.String())
}

// polls waits until a worker says that it is at work.
func (s *site) polls(ctx context.Context, cmd *exec.Cmd) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		st, err := local.Read(s.op.Settings.StateDir)
		if err != nil || st.Worker != nil && st.Worker.Process.PID == cmd.Process.Pid {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// slowly runs the pipeline once with calls that think, and says how long a worker was at it.
func (g *grounds) slowly(t *testing.T) time.Duration {
	t.Helper()
	s, err := g.newSite("slowly")
	require.NoError(t, err)
	require.NoError(t, s.slow(g.want.Calls))
	require.NoError(t, s.start(t.Context()))
	begun := time.Now()
	require.NoError(t, s.finish(t.Context()))
	took := time.Since(begun)
	require.NoError(t, s.invariants(g.want))
	return took
}

// soak is one run whose workers are interrupted, and that the last one completes.
func (g *grounds) soak(ctx context.Context, o ordeal, stranger process.Identity) (*site, error) {
	// a soak is long, and whoever starts one does something else meanwhile
	ctx, cancel := context.WithTimeout(ctx, 3*deadline)
	defer cancel()
	s, err := g.newSite(fmt.Sprintf("soak-%04d", o.k))
	if err != nil {
		return s, err
	}
	if o.think == nil {
		err = s.slow(g.want.Calls)
	} else {
		err = s.think(o.think)
	}
	if err != nil {
		return s, err
	}
	if err := s.start(ctx); err != nil {
		return s, err
	}
	if err := s.suffer(ctx, o, g.builds); err != nil {
		return s, err
	}
	if err := s.account(); err != nil {
		return s, err
	}
	if o.forgetful { // what was paid for twice is counted, and breaks other promises too
		return s, errors.Join(s.watch.over(), endSupervisors(filepath.Join(s.root, "state", "scratch")))
	}
	if err := errors.Join(s.invariants(g.want, stranger), s.replays(ctx)); err != nil {
		return s, err
	}
	return s, os.RemoveAll(s.root)
}

// replays executes the workflow code once more on the histories of all executions of the run.
func (s *site) replays(ctx context.Context) error {
	for next := ""; ; {
		history, err := histories.Fetch(ctx, s.op.Client, s.runID, next)
		if err != nil {
			return err
		}
		if err := histories.Replay(history, histories.Options{}); err != nil {
			return fmt.Errorf("replay execution %q of %s: %w", next, s.runID, err)
		}
		next = history.Events[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
		if next == "" {
			return nil
		}
	}
}

// account keeps what the agents' log and the journal have in the end.
func (s *site) account() error {
	now, err := look(s.dir, s.log)
	s.spent, s.attempts = judge(now.Calls), len(of[run.PassAttempt](now.Events, run.KindPassAttempt))
	return err
}

// suffer interrupts worker after worker, and has those that are left complete the run. builds are the folders of the
// programs that upgrades change between.
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
		return s.polls(ctx, cmd)
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
		if b.kind == upgraded { // the old one is told to stop when the new one is at work
			if _, err := s.asked(ctx, b.calls); err != nil {
				return err
			}
			build++
			if err := hire(); err != nil {
				return err
			}
		}
		if err := s.awaits(ctx, i, b); err != nil {
			return err
		}
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

// awaits returns at the moment of a blow.
func (s *site) awaits(ctx context.Context, i int, b blow) error {
	switch {
	case b.calls > 0:
		at, err := s.asked(ctx, b.calls)
		if err != nil {
			return err
		}
		b.life = time.Duration(b.part * float64(s.takes[at]))
	case i%4 > 0: // every fourth kill may hit a run that still waits for the last worker's heartbeat
		if err := s.goesOn(ctx); err != nil {
			return err
		}
	}
	after(b.life)
	if b.aim == "" {
		return nil
	}
	return s.meets(ctx, b.aim)
}

// asked waits until that number of calls has been started, and names the last of them.
func (s *site) asked(ctx context.Context, n int) (string, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		calls, err := readCalls(s.log)
		if err != nil {
			return "", err
		}
		seen := map[string]bool{}
		for _, c := range calls {
			if seen[c.At] = true; len(seen) == n {
				return c.At, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("wait for call %d: %w", n, ctx.Err())
		case <-tick.C:
		}
	}
}

// goesOn waits until the run does something that the last death did not find.
func (s *site) goesOn(ctx context.Context) error {
	left := s.deaths[len(s.deaths)-1].Left
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		journal, err := sizeOf(filepath.Join(s.dir, layout.EventsFile))
		if err != nil {
			return err
		}
		calls, err := readCalls(s.log)
		if err != nil || journal > len(left.Journal) || len(calls) > len(left.Calls) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if n := len(left.Events); n > 0 && left.Events[n-1].Kind == run.KindRunEnd {
			return nil
		}
	}
}

// meets waits for the beginning of a window, or for the end of the run.
func (s *site) meets(ctx context.Context, window string) error {
	journal := filepath.Join(s.dir, layout.EventsFile)
	seen, err := sizeOf(journal)
	if err != nil {
		return err
	}
	over, err := opens(journal, 0, closing)
	if err != nil {
		return err
	}
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for !over {
		if window == projecting && durable.ReadOwner(filepath.Join(s.dir, layout.LockFile)).PID != 0 {
			return nil
		}
		size, err := sizeOf(journal)
		if err != nil {
			return err
		}
		if size > seen {
			if over, err = opens(journal, seen, window); err != nil {
				return err
			}
			seen = size
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	for window == closing && durable.ReadOwner(filepath.Join(s.dir, layout.LockFile)).PID != 0 { // it still projects
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// opens says that a line behind a place of a journal is one that a window begins with, or the run's last.
func opens(journal string, from int, window string) (bool, error) {
	raw, err := os.ReadFile(journal)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	complete, _ := lines(raw[from:])
	for _, line := range complete {
		e, err := run.ParseEvent(line)
		if err != nil {
			continue // the rest of a line that was being written
		}
		var p run.PassEnd
		if e.Decode(&p); e.Kind == run.KindRunEnd || window == snapshotting && e.Kind == run.KindPassEnd && p.Turn() {
			return true, nil
		}
	}
	return false, nil
}

// sizeOf is a file's; a missing one has none.
func sizeOf(name string) (int, error) {
	fi, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return int(fi.Size()), nil
}

// worker starts the real worker of a build, or one that never finds the result of a finished call.
func (s *site) worker(ctx context.Context, build string, forgetful bool) (*exec.Cmd, error) {
	if forgetful {
		return s.launch(ctx, []string{point.Plan{Forget: true}.Setting()}, filepath.Join(build, "victim"), "worker")
	}
	return s.launch(ctx, nil, filepath.Join(build, "worker"))
}

// strike interrupts a worker and looks at what it left. The others stand still meanwhile: what they do is not what it
// left.
func (s *site) strike(kind string, victim *exec.Cmd, others []*exec.Cmd) (err error) {
	calls, err := readCalls(s.log)
	if err != nil {
		return err
	}
	running, begun := inFlight(calls, victim.Process.Pid), time.Now()
	if kind != killed {
		if err := dismiss(victim); err != nil {
			return err
		}
	}
	took := time.Since(begun)
	for _, cmd := range others {
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
	}
	if kind == killed {
		err = end(victim)
	}
	if err == nil {
		err = s.died(point.Point{At: "a random moment, by " + kind})
	}
	if n := len(s.deaths); err == nil {
		s.deaths[n-1].Kind, s.deaths[n-1].InFlight, s.deaths[n-1].Took = kind, running, took
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
	late := time.AfterFunc(deadline, func() { _ = cmd.Process.Kill() }) // then Wait gives an error
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("a worker that was told to stop: %w", err)
	}
	return nil
}

// inFlight is how many calls of a worker run, and are not answered.
func inFlight(calls []callLine, worker int) int {
	last := map[string]callLine{}
	for _, c := range calls {
		last[c.At] = c
	}
	n := 0
	for _, c := range last {
		if _, alive := agentOf(c); alive && c.Event == "start" && makerOf(c) == worker {
			n++
		}
	}
	return n
}

// makerOf is the number of the process that a call belongs to, by the delivery's own record; 0: not written down, or
// not any more.
func makerOf(c callLine) int {
	var id process.Identity
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(c.Dir), "worker.json"))
	if err != nil || json.Unmarshal(raw, &id) != nil {
		return 0
	}
	return id.PID
}

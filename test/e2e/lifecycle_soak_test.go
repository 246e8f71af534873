package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/invariants"
	"github.com/passbook-run/passbook/workflows/contract"
)

var lifecycleRuns = flag.Int("soak.lifecycle", 2,
	"runs that are reverted, forked and replayed while workers are killed")

// TestLifecycleSoak kills workers at random moments of runs that are paused, reverted to random checkpoints by two
// operators at once, and at the end forked and replayed. All of them end with the artifact of an undisturbed run.
func TestLifecycleSoak(t *testing.T) {
	t.Parallel()
	g := newGrounds(t, small())
	stranger := bystander(t)
	var numbers []int
	for k := range *lifecycleRuns {
		numbers = append(numbers, k)
	}
	var mu sync.Mutex
	sum := map[string]int{}
	each(t.Context(), 2*runtime.NumCPU(), numbers, func(ctx context.Context, k int) {
		l := &life{g: g, random: rand.New(rand.NewSource(*soakSeed + int64(k))), did: map[string]int{}}
		err := l.run(ctx, k, stranger)
		mu.Lock()
		defer mu.Unlock()
		if err != nil && ctx.Err() == nil {
			t.Errorf("run %d: %v%s", k, err, l.site.story())
		}
		for what, n := range l.did {
			sum[what] += n
		}
	})
	t.Logf("%d runs, seed %d: %v", *lifecycleRuns, *soakSeed, sum)
	require.Positive(t, sum["reverted"], "no run was reverted")
}

// life is one run of the lifecycle soak.
type life struct {
	g      *grounds
	site   *site
	random *rand.Rand
	did    map[string]int
}

func (l *life) run(ctx context.Context, k int, stranger process.Identity) error {
	ctx, cancel := context.WithTimeout(ctx, 3*deadline)
	defer cancel()
	var err error
	if l.site, err = l.g.newSite(fmt.Sprintf("life-%04d", k)); err != nil {
		return err
	}
	s, thinking := l.site, map[string]time.Duration{}
	for _, at := range l.g.want.Calls {
		thinking[at] = 60 * time.Millisecond
	}
	// a revert goes back: the watch forbids that
	if err := errors.Join(s.watch.over(), s.think(thinking), s.start(ctx)); err != nil {
		return err
	}
	for range 1 + l.random.Intn(2) {
		if err := l.goBack(ctx); err != nil {
			return err
		}
	}
	if err := l.finish(ctx); err != nil {
		return err
	}
	now, err := look(s.dir, s.log)
	if err != nil {
		return err
	}
	if err := errors.Join(l.valid(s, now), violated(8, processes(now, []process.Identity{stranger}))); err != nil {
		return err
	}
	return errors.Join(l.branch(ctx, run.ModeFork), l.branch(ctx, run.ModeReplay))
}

// finish has the real worker execute the run to its end, and resumes it if a pause is handled after a revert.
func (l *life) finish(ctx context.Context) error {
	s := l.site
	cmd, err := s.program(ctx, nil, "worker")
	if err != nil {
		return err
	}
	for closed := false; !closed && err == nil; {
		if closed, err = s.settled(ctx); closed || err != nil {
			break
		}
		var refused *operations.RefusedError
		if _, err = s.op.Send(ctx, s.runID, contract.VerbResume, contract.Message{}); errors.As(err, &refused) {
			err = nil
		}
		after(100 * time.Millisecond) // the directory follows
	}
	if err == nil {
		err = s.ended(ctx)
	}
	return errors.Join(err, end(cmd))
}

// pause lets a random part of a duration pass.
func (l *life) pause(most time.Duration) { after(time.Duration(l.random.Int63n(int64(most)))) }

// goBack pauses the run at a random moment, kills its worker at another, and has two operators revert it to a random
// checkpoint at once.
func (l *life) goBack(ctx context.Context) error {
	s := l.site
	cmd, err := s.program(ctx, nil, "worker")
	if err != nil {
		return err
	}
	l.pause(1500 * time.Millisecond)
	_, err = s.op.Send(ctx, s.runID, contract.VerbPause, contract.Message{Now: l.random.Intn(2) == 0})
	var refused *operations.RefusedError
	if err != nil && !errors.As(err, &refused) { // refused: it has ended, or is paused already
		return errors.Join(err, end(cmd))
	}
	l.pause(400 * time.Millisecond)
	if err := end(cmd); err != nil {
		return err
	}
	if cmd, err = s.program(ctx, nil, "worker"); err != nil {
		return err
	}
	defer func() { _ = end(cmd) }()
	if closed, err := s.settled(ctx); closed || err != nil {
		return err
	}
	dir := rundir.At(s.dir)
	list, err := rundir.ListCheckpoints(dir, true)
	if err != nil {
		return err
	}
	to := list[l.random.Intn(len(list))]
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = s.op.Revert(ctx, dir, operations.Reverting{To: to.ID}) })
	}
	wg.Wait() // a worker answers an Update: it may only be killed after that
	if err := end(cmd); err != nil {
		return err
	}
	if errors.As(errs[0], &refused) && errors.As(errs[1], &refused) {
		l.did["refused"]++ // the directory was behind: the run has continued from an earlier revert
		return nil
	}
	if errs[0] != nil && errs[1] != nil {
		return fmt.Errorf("revert to %s: %w", to.ID, errors.Join(errs...))
	}
	l.did["reverted"]++
	return nil
}

// settled waits until the run is paused or closed.
func (s *site) settled(ctx context.Context) (closed bool, err error) {
	err = wait(ctx, "the run is paused or closed", func() (bool, error) {
		now, err := rundir.At(s.dir).Now()
		st := now.State.Status
		closed = st.Closed() && st != run.Unknown && st != ""
		return err == nil && (st == run.Paused || closed), nil
	})
	return closed, err
}

// valid checks what holds of every run that has ended after reverts.
func (l *life) valid(s *site, now instant) error {
	reverts := 0
	for _, r := range of[run.RunReverted](now.Events, run.KindRunReverted) {
		if r.Cause == "revert" {
			reverts++
		}
	}
	if now.Meta.State.Generation != reverts {
		return fmt.Errorf("%d reverts, but meta.json has generation %d", reverts, now.Meta.State.Generation)
	}
	_, answers := counts(now.Calls)
	for at, n := range answers {
		if n > 1+reverts {
			return violated(4, fmt.Errorf("call %s was answered %d times with %d reverts", at, n, reverts))
		}
	}
	want, got := maps.Clone(l.g.want.Files), works(now.Files)
	maps.DeleteFunc(got, func(name, _ string) bool { return strings.Contains(filepath.Dir(name), "~") })
	return errors.Join(
		violated(2, invariants.WholeLines(s.dir)), violated(3, s.prefixes(now)), violated(6, costsAgree(s.dir, now)),
		violated(7, differences(want, got)),
		violated(9, provenance(s.dir, now)), violated(10, oneEnd(now)), checked(s.dir),
	)
}

// branch forks or replays the ended run from a random checkpoint, kills a worker meanwhile, and expects the same
// artifact. The source does not change, and a replay makes no call.
func (l *life) branch(ctx context.Context, mode string) error {
	s := l.site
	before, err := look(s.dir, s.log)
	if err != nil {
		return err
	}
	list, err := rundir.ListCheckpoints(rundir.At(s.dir), true)
	if err != nil {
		return err
	}
	from, err := s.op.Origin(ctx, s.dir)
	if err != nil {
		return err
	}
	child := *s
	child.dir, child.deaths = filepath.Join(s.root, mode), nil
	at := list[l.random.Intn(len(list))]
	failed := func(err error) error { return fmt.Errorf("%s of %s: %w", mode, at.ID, err) }
	st, err := s.op.Branch(ctx, from, operations.Branching{Mode: mode, From: at.ID, Dir: child.dir})
	if err != nil {
		return failed(err)
	}
	child.runID = st.RunID
	cmd, err := child.program(ctx, nil, "worker")
	if err != nil {
		return err
	}
	l.pause(700 * time.Millisecond)
	if err := errors.Join(end(cmd), child.finish(ctx)); err != nil {
		return failed(err)
	}
	l.did[mode]++
	now, nerr := look(child.dir, child.log)
	source, serr := look(s.dir, s.log)
	if err := errors.Join(nerr, serr, differences(before.Files, source.Files)); err != nil {
		return failed(err)
	}
	if mode == run.ModeReplay && len(now.Calls) != len(before.Calls) {
		return failed(fmt.Errorf("it made %d calls", len(now.Calls)-len(before.Calls)))
	}
	if got := now.Files["artifact.html"]; got != l.g.want.Artifact {
		return failed(fmt.Errorf("the artifact is %s, undisturbed it is %s", got, l.g.want.Artifact))
	}
	return errors.Join(violated(2, invariants.WholeLines(child.dir)), violated(6, costsAgree(child.dir, now)),
		violated(10, oneEnd(now)), checked(child.dir))
}

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

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

var lifecycleRuns = flag.Int("soak.lifecycle", 4,
	"how many runs are reverted, forked and replayed while workers are killed")

// TestLifecycleSoak kills workers at random moments of runs that are paused, taken back to random checkpoints, two
// askers at once, and at last forked and replayed. All of them end with the artifact of an undisturbed run.
func TestLifecycleSoak(t *testing.T) {
	t.Parallel()
	g := newGrounds(t, small())
	stranger, random := bystander(t), rand.New(rand.NewSource(*soakSeed))
	took := g.slowly(t)
	seeds, numbers := map[int]int64{}, []int{}
	for k := 1; k <= *lifecycleRuns; k++ {
		seeds[k], numbers = random.Int63(), append(numbers, k)
	}
	var mu sync.Mutex
	sum := map[string]int{}
	each(t.Context(), 2*runtime.NumCPU(), numbers, func(ctx context.Context, k int) {
		l := &life{g: g, random: rand.New(rand.NewSource(seeds[k])), took: took, did: map[string]int{}}
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
	require.Positive(t, sum["reverted"], "no revert was made")
	require.Positive(t, sum["killed"])
}

// life is one run of the lifecycle soak.
type life struct {
	g      *grounds
	site   *site
	random *rand.Rand
	took   time.Duration // by an undisturbed run
	did    map[string]int
}

func (l *life) run(ctx context.Context, k int, stranger process.Identity) error {
	ctx, cancel := context.WithTimeout(ctx, 3*deadline)
	defer cancel()
	var err error
	if l.site, err = l.g.newSite(fmt.Sprintf("life-%04d", k)); err != nil {
		return err
	}
	s := l.site
	// reverts go back: that is what the watch forbids
	if err := errors.Join(s.watch.over(), s.slow(l.g.want.Calls), s.start(ctx)); err != nil {
		return err
	}
	for range 1 + l.random.Intn(3) {
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
	if err := errors.Join(l.sound(s, now), violated(8, processes(now, []process.Identity{stranger}))); err != nil {
		return err
	}
	return errors.Join(l.branch(ctx, run.ModeFork), l.branch(ctx, run.ModeReplay))
}

// finish has the real worker run to the end of the run, and resumes it where a pause was meant for what has been taken
// back since.
func (l *life) finish(ctx context.Context) error {
	s := l.site
	cmd, err := s.program(ctx, nil, "worker")
	if err != nil {
		return err
	}
	over := make(chan error, 1)
	go func() { over <- s.ended(ctx) }()
	for {
		select {
		case err := <-over:
			return errors.Join(err, end(cmd))
		case <-time.After(100 * time.Millisecond):
		}
		now, err := projector.At(s.dir).Now()
		if err != nil || now.State.Status != run.Paused {
			continue
		}
		var refused *operations.RefusedError
		if _, err := s.op.Send(ctx, s.runID, workflows.VerbResume, workflows.Message{}); err != nil &&
			!errors.As(err, &refused) {
			return errors.Join(err, end(cmd))
		}
	}
}

// moment is a random part of the time that a run takes.
func (l *life) moment() time.Duration { return time.Duration(l.random.Int63n(int64(l.took))) }

// goBack pauses the run at a random moment, kills its worker at another, and takes it back to a random checkpoint, by
// two at once.
func (l *life) goBack(ctx context.Context) error {
	s := l.site
	cmd, err := s.program(ctx, nil, "worker")
	if err != nil {
		return err
	}
	after(l.moment() / 2)
	_, err = s.op.Send(ctx, s.runID, workflows.VerbPause, workflows.Message{Now: l.random.Intn(2) == 0})
	var refused *operations.RefusedError
	over := errors.As(err, &refused) // it has ended, or rests already
	if err != nil && !over {
		return errors.Join(err, end(cmd))
	}
	after(l.moment() / 8)
	l.did["killed"]++
	if err := end(cmd); err != nil {
		return err
	}
	if cmd, err = s.program(ctx, nil, "worker"); err != nil {
		return err
	}
	defer func() { _ = end(cmd) }()
	if err := s.rests(ctx); err != nil {
		return err
	}
	dir := projector.At(s.dir)
	now, err := dir.Now()
	if err != nil || now.State.Status != run.Paused {
		return err
	}
	list, err := projector.ListCheckpoints(dir.Dir, true)
	if err != nil {
		return err
	}
	to := list[l.random.Intn(len(list))]
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = s.op.Revert(ctx, dir, operations.Reverting{To: to.ID}) })
	}
	after(l.moment() / 16)
	l.did["killed"]++
	wg.Wait() // an Update is answered by a worker: it may only die behind that
	if err := end(cmd); err != nil {
		return err
	}
	if errors.As(errs[0], &refused) && errors.As(errs[1], &refused) {
		l.did["refused"]++ // the directory was behind: the run had gone on from an earlier revert
		return nil
	}
	if errs[0] != nil && errs[1] != nil {
		return fmt.Errorf("revert to %s: %w", to.ID, errors.Join(errs...))
	}
	l.did["reverted"]++
	return nil
}

// rests waits until the run is paused or over.
func (s *site) rests(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := projector.At(s.dir).Now()
		if err == nil && (now.State.Status == run.Paused || now.State.Status.Closed() &&
			now.State.Status != run.Unknown && now.State.Status != "") {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// sound is what holds of every run that has come to its end, whatever happened to it.
func (l *life) sound(s *site, now instant) error {
	reverts, generation := 0, 0
	for _, r := range of[run.RunReverted](now.Events, run.KindRunReverted) {
		if r.Cause == "revert" {
			reverts++
		}
		generation = max(generation, r.State.Generation)
	}
	if generation != reverts || now.Meta.State.Generation != reverts {
		return fmt.Errorf("%d reverts made generation %d, meta.json says %d", reverts, generation,
			now.Meta.State.Generation)
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
		violated(2, wholeLines(s.dir, now.Files)), violated(3, s.prefixes(now)), violated(6, costsAgree(s.dir, now)),
		violated(7, differences(want, got)),
		violated(9, provenance(s.dir, now)), violated(10, oneEnd(now)), checked(s.dir),
	)
}

// branch makes a fork or a replay of a random checkpoint of the finished run, kills a worker on the way, and wants the
// same artifact. The source keeps every byte, and a replay makes no call.
func (l *life) branch(ctx context.Context, mode string) error {
	s := l.site
	before, err := look(s.dir, s.log)
	if err != nil {
		return err
	}
	list, err := projector.ListCheckpoints(projector.At(s.dir).Dir, true)
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
	st, err := s.op.Branch(ctx, from, operations.Branching{Mode: mode, From: at.ID, Dir: child.dir})
	if err != nil {
		return fmt.Errorf("%s of %s: %w", mode, at.ID, err)
	}
	child.runID = st.RunID
	cmd, err := child.program(ctx, nil, "worker")
	if err != nil {
		return err
	}
	after(l.moment() / 4)
	l.did["killed"]++
	if err := errors.Join(end(cmd), child.finish(ctx)); err != nil {
		return fmt.Errorf("%s of %s: %w", mode, at.ID, err)
	}
	l.did[mode]++
	now, err := look(child.dir, child.log)
	if err != nil {
		return err
	}
	source, err := look(s.dir, s.log)
	if err != nil {
		return err
	}
	if !maps.Equal(before.Files, source.Files) {
		return fmt.Errorf("%s of %s changed its source: %w", mode, at.ID, differences(before.Files, source.Files))
	}
	if mode == run.ModeReplay && len(now.Calls) != len(before.Calls) {
		return fmt.Errorf("the replay of %s made %d calls", at.ID, len(now.Calls)-len(before.Calls))
	}
	if got := now.Files["artifact.html"]; got != l.g.want.Artifact {
		return fmt.Errorf("%s of %s has the artifact %s, undisturbed it is %s", mode, at.ID, got, l.g.want.Artifact)
	}
	return errors.Join(violated(2, wholeLines(child.dir, now.Files)), violated(6, costsAgree(child.dir, now)),
		violated(10, oneEnd(now)), checked(child.dir))
}
